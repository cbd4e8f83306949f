"""Operations, and the forms of their results, are found by name in a process that has used none of them."""

from __future__ import annotations

from pathlib import Path

from tests.fresh import run

#: What a client of a server imports.
CLIENT = "import recollect.wire.client.unix, recollect.memory\n"
FORMS = """
from recollect.arguments.json_form import form_named
from recollect.operations import all_operations
missing = []
for name, kind in all_operations().items():
    try:
        kind.result and form_named(kind.result)
    except NameError:
        missing.append(name)
print(len(all_operations()), missing)
"""
#: A module of a facet that another thread is importing: its class has a name before it is complete.
HALF = """
import gate
from recollect.operations.base import Operation
class Half(Operation, name="half"):
    complete = False
gate.defined.set()
gate.go.wait(60)
Half.complete = True
"""
THREADS = """
import sys, threading, types
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from recollect.operations import base
sys.path.insert(0, str(folder))
gate = sys.modules["gate"] = types.ModuleType("gate")
gate.defined, gate.go = threading.Event(), threading.Event()
(folder / "half_of_a_facet.py").write_text(HALF)
base.defined_in("half_of_a_facet")
waits = threading.Event()
def imported(module):
    waits.set()
    return import_module(module)
base.import_module = imported
def ask():
    kind = base.operation_named("half")
    return kind.complete
with ThreadPoolExecutor() as pool:
    pool.submit(import_module, "half_of_a_facet")
    gate.defined.wait(60)
    asked = pool.submit(ask)
    asked.add_done_callback(lambda _: waits.set())
    waits.wait(60)
    gate.go.set()
    print(asked.result())
"""


def test_a_client_knows_the_form_of_every_result(tmp_path: Path) -> None:
    count, _, missing = run(CLIENT + FORMS, tmp_path).partition(" ")

    assert int(count) > 70
    assert missing == "[]"


def test_a_form_that_is_defined_nowhere_is_noticed(tmp_path: Path) -> None:
    lost = "from recollect.arguments import json_form\ndel json_form._RESULTS['Merged']\n"

    assert run(CLIENT + lost + FORMS, tmp_path).endswith("['merge_branch']")


def test_a_thread_gets_no_operation_that_another_one_is_still_importing(tmp_path: Path) -> None:
    assert run(f"HALF = {HALF!r}\n{THREADS}", tmp_path) == "True"
