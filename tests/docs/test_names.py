"""Names of code and of files that documents mention exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest
from tests.docs.source import PACKAGE, modules
from tests.paths import ROOT

import recollect
from recollect.engine.results import Hit, Hits, Plan
from recollect.ledger.commits import Commit
from recollect.memory import Batch, Memory
from recollect.observe import conventions
from recollect.records.record import Record

#: (The changelog also names what is gone.)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
#: What a variable of the examples is.
VARIABLES: dict[str, Any] = {
    "memory": Memory,
    "batch": Batch,
    "record": Record,
    "hit": Hit,
    "hits": Hits,
    "plan": Plan,
    "commit": Commit,
    "f": recollect.filters,
    "recollect": recollect,
}
#: Folders that CONTRIBUTING names for what is to come, and what the format of a file calls so.
NO_PATHS = {"src/recollect/server/", "src/recollect/integrations/", "FILE.index/", "setting/"}
#: The names of spans and of their attributes, which are no names of code.
OF_SPANS = {value for value in vars(conventions).values() if isinstance(value, str) and "." in value}
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_DOTTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*\))?")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/|(?:[\w.-]+/)*[\w-]+\.py")
_DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def mentioned(text: str) -> list[str]:
    """The pieces of code in the sentences of a page, and the names that the reference is made of."""
    return re.findall(r"`([^`\n]+)`", _FENCED.sub("", text)) + _DIRECTIVE.findall(text)


def has(owner: Any, names: list[str]) -> bool:
    """Return whether a module or a class has a name, and what that is the next name, and so on."""
    for place, name in enumerate(names):
        hints = get_type_hints(owner) if isinstance(owner, type) else {}
        if name in hints:
            owner = next((each for each in get_args(hints[name]) if isinstance(each, type)), hints[name])
        elif hasattr(owner, name):
            owner = getattr(owner, name)
        elif isinstance(owner, ModuleType):
            try:
                owner = import_module(f"{owner.__name__}.{name}")
            except ImportError:  # it needs a framework that is not installed here, or does not exist
                return _states(owner.__name__, names[place:]) or _states(f"{owner.__name__}.{name}", names[place + 1 :])
        else:
            return False
    return True


def _states(module: str, names: list[str]) -> bool:
    """Return whether the source of a module that cannot be imported here defines or imports a name."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    source = next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)
    if source is None or len(names) > 1:
        return False
    known: set[str] = set()
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            known.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            known.update(each.asname or each.name for each in node.names)
    return known.issuperset(names)


#: Endings of files, which are no attributes.
FILES = (".py", ".db", ".json", ".jsonl", ".md", ".txt", ".toml")


def missing(text: str) -> list[str]:
    """Return what a page mentions and is nowhere."""
    modules = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith("_")}
    out = []
    for piece in mentioned(text):
        if (dotted := _DOTTED.fullmatch(piece)) and not piece.endswith(FILES) and piece not in OF_SPANS:
            first, *rest = dotted[1].split(".")
            owners = [VARIABLES[first]] if first in VARIABLES else []
            owners += [import_module(f"recollect.{first}")] if first in modules else []
            if owners and not any(has(owner, rest) for owner in owners):
                out.append(piece)
        elif _PATH.fullmatch(piece) and piece not in NO_PATHS:
            path = piece.rstrip("/")
            if not (ROOT / path).exists() and not any(PACKAGE.glob(f"**/{path}")):
                out.append(piece)
    return out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_mentions_exists(page: Path) -> None:
    assert missing(page.read_text("utf-8")) == []


def test_the_check_of_names_notices_what_is_nowhere() -> None:
    gone = [
        "indexes.signals.Session",
        "hits.plan.colour",
        "memory.hold()",
        "engine/writing.py",
        "plugins/",
        "recollect.aio",
        "recollect.compat.langgraph.Store",
        "recollect.compat.autogen",
    ]
    there = [
        "indexes.scoring.signals",
        "hits.plan.kernels",
        "memory.recall(question, k=10)",
        "engine/engine.py",
        "bench/",
        "recollect.compat.langgraph.RecollectStore",
        "recollect.compat.adk.RecollectMemoryService",
        "recollect.testing.langgraph_store",
    ]
    assert missing(" ".join(f"`{name}`" for name in [*gone, *there])) == gone
    assert missing("::: recollect.memory.memory.Store\n") == ["recollect.memory.memory.Store"]


#: Names that other projects gave to their classes, and that the layers for their users need.
NAMES_OF_OTHERS = {
    "compat/haystack/memory_store.py": {"RecollectMemoryStore"},  # as those of all memory services are called there
    "compat/jazzmine.py": {"SemanticMemory"},
    "compat/llm4s/manager.py": {"MemoryStats"},
    "compat/llm4s/store.py": {"MemoryStore"},
    "compat/llm4s/types.py": {"EntityId", "Memory"},
    "compat/mem0/aio.py": {"AsyncMemory"},
    "compat/mem0/memory.py": {"Memory"},
    "compat/nest/plugins.py": {"SemanticMemory"},
}


def names_of_several(modules: dict[str, ast.Module]) -> list[str]:
    """Return the public classes that several modules define, in alphabetical order."""
    found = Counter(
        node.name
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and node.name not in NAMES_OF_OTHERS.get(path, ())
    )
    return sorted(name for name, count in found.items() if count > 1)


def test_one_class_name_is_one_thing() -> None:
    assert names_of_several(modules()) == []
    other = ast.parse("class Record:\n    class Table: ...")
    assert names_of_several({**modules(), "other.py": other}) == ["Record", "Table"]
