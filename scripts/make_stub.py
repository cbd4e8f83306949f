"""Writes src/recollect/memory/coroutines.pyi: the calls that `recollect.memory.awaited` derives, for type checkers.

    python -m scripts.make_stub

A call has the signature of the synchronous one as it is written there, and the first line of its docstring.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recollect.memory.awaited import (
    AsyncBatch,
    AsyncGlossary,
    AsyncKeyed,
    AsyncMemory,
    AsyncOutline,
    AsyncQuarantine,
    AsyncSdr,
)

PATH = Path(__file__).parent.parent / "src/recollect/memory/coroutines.pyi"
TWINS: tuple[type, ...] = (
    AsyncMemory,
    AsyncBatch,
    AsyncGlossary,
    AsyncOutline,
    AsyncKeyed,
    AsyncSdr,
    AsyncQuarantine,
)
_HEAD = '''"""The coroutines that `awaited` derives. Written by scripts/make_stub.py."""
# ruff: noqa: A002, E501
'''
#: A module and a name in it; "" is the module itself.
Home = tuple[str, str]


def stub(twins: tuple[type, ...] = TWINS) -> str:
    """Return the text of the stub."""
    homes: dict[str, Home] = {}
    classes = []
    for twin in twins:
        name = twin.__name__.removeprefix("Async")
        calls = textwrap.indent("\n".join(_declared(call, homes) for call in _derived(twin)), "    ")
        classes.append(f'class {name}Coroutines:\n    """The calls of `{name}`, as coroutines."""\n\n{calls}')
    imports = [_imported(name, *home) for name, home in homes.items()]
    return _formatted("\n".join([_HEAD, *imports, *classes]))


def _imported(name: str, module: str, there: str) -> str:
    statement = f"from {module} import {there}" if there else f"import {module}"
    return statement if name == (there or module) else f"{statement} as {name}"


def _derived(twin: type) -> Iterator[Callable[..., Any]]:
    """Yield the functions that a class has as coroutines, as they are written, by name."""
    for name, member in sorted(vars(twin).items()):
        if not name.startswith("_") and inspect.iscoroutinefunction(member):
            written = inspect.unwrap(member)
            if not inspect.iscoroutinefunction(written):
                yield written


def _declared(call: Callable[..., Any], homes: dict[str, Home]) -> str:
    """Return the declaration of a coroutine, and add what its names are to `homes`."""
    (written,) = ast.parse(textwrap.dedent(inspect.getsource(call))).body
    assert isinstance(written, ast.FunctionDef)
    assert written.returns
    known = _names(call.__module__)
    for node in [*ast.walk(written.args), *ast.walk(written.returns)]:
        if isinstance(node, ast.Name) and node.id not in vars(builtins):
            home = known[node.id]
            while homes.setdefault(node.id, home) != home:  # two modules mean different things by one name
                node.id += "_"
    first_line = (inspect.getdoc(call) or "").partition("\n")[0]
    head = f"async def {call.__name__}({ast.unparse(written.args)}) -> {ast.unparse(written.returns)}:"
    return f'{head}\n    """{first_line}"""'


def _names(module: str) -> dict[str, Home]:
    """Return what the names of a module are: those that it defines, and those that it imports."""
    names = {name: (module, name) for name in vars(sys.modules[module])}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name: (str(node.module), each.name) for each in node.names}
        elif isinstance(node, ast.Import):
            names |= {each.asname or each.name: (each.name, "") for each in node.names}
    return names


def _formatted(text: str) -> str:
    for command in (["check", "--fix", "--select", "I"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(PATH), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
