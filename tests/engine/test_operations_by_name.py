"""Operations, and the forms of their results, are found by name in a process that has used none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
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
THREADS = """
import threading
from recollect.operations import from_json
start, failed = threading.Barrier(8), []
def ask():
    start.wait()
    try:
        from_json({"op": "recall_terms", "question": "a", "agent": "b"})
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=ask) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(failed)
"""


def test_a_client_knows_the_form_of_every_result(tmp_path: Path) -> None:
    count, _, missing = run(CLIENT + FORMS, tmp_path).partition(" ")

    assert int(count) > 70
    assert missing == "[]"


def test_a_form_that_is_defined_nowhere_is_noticed(tmp_path: Path) -> None:
    lost = "from recollect.arguments import json_form\ndel json_form._RESULTS['Merged']\n"

    assert run(CLIENT + lost + FORMS, tmp_path).endswith("['merge_branch']")


@pytest.mark.parametrize("module", ["recollect.memory", "recollect.server.assembly"])
def test_threads_that_ask_for_an_operation_of_a_facet_at_once_get_it(module: str, tmp_path: Path) -> None:
    assert run(f"import {module}\n{THREADS}", tmp_path) == "[]"
