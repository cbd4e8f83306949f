"""The public API is what it says, and costs little to import."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from scripts import make_stub

import recollect
import recollect.filters
import recollect.operations
import recollect.testing
from recollect import errors
from recollect.errors import RecollectError, StoreError
from recollect.memory.awaited import AsyncBatch, coroutines_of
from recollect.records.record import FieldChanges, Fields

PUBLIC = {
    "ABSENT AsyncMemory Backup Batch Bisected BranchInfo Call Change ChangedRecord CheckReport Conflict "
    "Commit CommitStream Compacted Consolidated Context ContextItem Deviation Difference Due DuplicateGroup "
    "EntityId Erased Export ExportedPart Failed Hit HitChange Hits Limits Lineage Memory Merged MergedCopy "
    "Migrated NamespaceHead Outcome PartCounts Policies Quota Record RecordId RecordList RecordVersion "
    "RecollectError RecollectWarning Report RescueReport Replayed Restored Retention RetentionRule Rewritten "
    "Snapshot StoreKeys "
    "Subscription Summary Taint Verdict Why __version__ connect errors filters "
    "decrypt encrypt merge_copy migrate open observe operations policies rescue restore verify"
}


def test_the_stub_has_each_public_name_from_the_module_that_is_its_home() -> None:
    assert recollect.__file__ is not None
    tree = ast.parse(Path(recollect.__file__).with_suffix(".pyi").read_text("utf-8"))
    stated = {each.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for each in node.names}
    assert stated.keys() == set(recollect.__all__) - {"__version__"}
    for name, module in stated.items():
        assert getattr(import_module(str(module)), name) is getattr(recollect, name)


def test_the_public_names_are_these_and_each_is_there() -> None:
    assert set(recollect.__all__) == set(" ".join(PUBLIC).split())
    for module in (recollect, recollect.filters, recollect.testing):
        for name in module.__all__:
            assert getattr(module, name) is not None
        assert len(set(module.__all__)) == len(module.__all__)
    assert set(dir(recollect)) == set(recollect.__all__)


def test_a_memory_has_few_public_members() -> None:
    """A call that is another one with an argument, or one operation, has no name of its own: see docs/decisions.md.

    Three are those of retention: what removes records by itself must be set, shown and tried where a person looks.
    """
    assert len([name for name in dir(recollect.Memory) if not name.startswith("_")]) <= 98


def test_every_public_call_is_documented() -> None:
    owners: tuple[Any, ...] = (
        recollect.Memory,
        recollect.Batch,
        recollect.AsyncMemory,
        AsyncBatch,
        recollect.RecordList,
        recollect.Hits,
        recollect.Record,
        recollect.Subscription,
        recollect.CommitStream,
    )
    members: list[tuple[Any, str, Any]] = [(owner, *member) for owner in owners for member in inspect.getmembers(owner)]
    members += [(recollect.filters, name, getattr(recollect.filters, name)) for name in recollect.filters.__all__]
    for owner, name, member in members:
        if not name.startswith("_") and callable(member):
            assert inspect.getdoc(member), f"{owner}.{name}"


class _Owner:
    def added(self, error: StoreError | None = None) -> bytes:
        """Return nothing."""
        raise NotImplementedError


def test_the_stub_of_the_awaited_calls_is_what_the_script_writes() -> None:
    written = make_stub.PATH.read_text("utf-8")
    assert make_stub.stub() == written, "run python -m scripts.make_stub"

    @coroutines_of(_Owner)
    class AsyncOwner: ...

    more = make_stub.stub((*make_stub.TWINS, AsyncOwner))
    assert "class OwnerCoroutines:" in more
    assert "async def added(self, error: StoreError | None = None) -> bytes:" in more


def test_the_awaited_calls_have_the_first_line_of_the_docstring_where_an_editor_finds_it() -> None:
    found = 0
    for kind in ast.parse(make_stub.PATH.read_text("utf-8")).body:
        if not isinstance(kind, ast.ClassDef):
            continue
        twin = next(each for each in make_stub.TWINS if each.__name__ == f"Async{kind.name.removesuffix('Coroutines')}")
        for call in kind.body[1:]:
            assert isinstance(call, ast.AsyncFunctionDef)
            assert ast.get_docstring(call) == (inspect.getdoc(getattr(twin, call.name)) or "").splitlines()[0]
            found += 1
    assert found > 140


def test_help_and_notebooks_list_the_fields() -> None:
    for owner in (recollect.Memory, recollect.Batch, recollect.AsyncMemory):
        for name, fields in (("remember", Fields), ("update", FieldChanges)):
            parameters = inspect.signature(getattr(owner, name)).parameters
            assert set(fields.__annotations__) <= set(parameters)
            assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())
            assert "importance" in pydoc.render_doc(getattr(owner, name))
    documented = re.findall(r"\w+", inspect.getdoc(recollect.AsyncMemory.remember) or "")
    assert set(Fields.__annotations__) <= set(documented)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(recollect, "remember")


def test_importing_the_package_loads_neither_numpy_nor_sqlite_nor_a_terminal_library() -> None:
    heavy = ("numpy", "apsw", "rich", "click", "asyncio")
    code = f"import sys, recollect; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_error_has_a_code_of_its_own_and_survives_pickling() -> None:
    import pickle

    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, RecollectError)]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)
    for kind in kinds:
        if kind is RecollectError:
            continue
        count = len(inspect.signature(kind).parameters)
        error = kind(*"vwxyz"[:count])
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (kind, str(error))
        assert error.to_json()["error"] == kind.code
        error.unchanged = True  # as of a call that writes
        if kind not in (RecollectError, StoreError) and "Raised before anything is changed" not in (kind.__doc__ or ""):
            assert ";" in str(error), f"{kind.__name__} does not say what state things are in"
