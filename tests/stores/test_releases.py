"""Every release reads what those before it wrote (`scripts/make_golden.py`): stores, proofs, receipts, exports."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scripts.make_golden import SECRET, said
from tests.paths import GOLDEN

import recollect
from recollect._version import __version__
from recollect.cli.app import app
from recollect.errors import DamagedStoreError

pytestmark = pytest.mark.files

RELEASES = sorted(path.parent.name for path in GOLDEN.glob("*/contents.json"))
SECRETS = {"plain": None, "sealed": SECRET}


def copied(release: str, name: str, folder: Path) -> Path:
    """Return a copy of a store of a release, as its user would have it."""
    assert (GOLDEN / release / f"{name}.db").is_file(), "git ignores it"
    for path in (GOLDEN / release).glob(f"{name}.db*"):
        shutil.copy(path, folder)
        os.chmod(folder / path.name, 0o600)
    return folder / f"{name}.db"


def described(release: str, name: str) -> dict[str, Any]:
    stated: dict[str, Any] = json.loads((GOLDEN / release / "contents.json").read_text("utf-8"))[name]
    return stated


def test_this_release_has_its_files() -> None:
    assert __version__ in RELEASES, "python -m scripts.make_golden"


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_store_of_a_release_has_what_it_had_and_can_be_written(release: str, name: str, tmp_path: Path) -> None:
    path, wanted = copied(release, name, tmp_path), described(release, name)

    with recollect.open(path, secret=SECRETS[name]) as store:
        found = json.loads(json.dumps(said(store)))
        for part in ("namespaces", "log", "snapshots", "quota", "retention", "quarantine"):
            assert found[part] == wanted[part], part
        assert store.check() == []
        assert store.glossary.recall("turning the bow", "bot")[0]["key"] == "tack"
        assert [hit.node.title for hit in store.outline.search("sails cotton")] == ["Sails"]
        assert store.sdr.query("halyard frayed")[0]["text"] == "the halyard is frayed"
        assert store.keyed.read("plan") == b"leave at dawn"
        stored = store.remember("a later release writes to it")
        merged = store.merge_branch("open")
        assert [store.get(stored.id), store.get("open")] == [stored, store.on("open").get("open")]
        assert merged.conflicts == ()
    recollect.migrate(path, secret=SECRETS[name])
    with recollect.open(path, secret=SECRETS[name]) as store:
        assert store.check() == []
        assert store.get(stored.id) == stored


@pytest.mark.parametrize("release", RELEASES)
def test_proofs_and_receipts_of_a_release_can_be_verified(release: str, tmp_path: Path) -> None:
    wanted = described(release, "plain")

    for each in wanted["proofs"]:
        root = tuple(each["root"]) if isinstance(each["root"], list) else each["root"]
        assert recollect.verify(each["proof"], root)
        assert not recollect.verify(each["proof"], ("0" * 64, "1" * 64) if isinstance(root, tuple) else "0" * 64)
    with recollect.open(copied(release, "plain", tmp_path)) as store:
        for receipt in wanted["receipts"]:
            replayed = store.replay(receipt)
            assert replayed.status in ("same", "rules changed")


@pytest.mark.parametrize("release", RELEASES)
def test_a_receipt_of_another_store_is_noticed(release: str, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "other.db") as store:
        for receipt in described(release, "plain")["receipts"]:
            assert store.replay(receipt).status == "different"


@pytest.mark.parametrize("release", RELEASES)
def test_an_export_of_a_release_is_the_same_memory_again(release: str, tmp_path: Path) -> None:
    wanted = described(release, "plain")["namespaces"]

    result = CliRunner().invoke(
        app, ["import", "jsonl", str(GOLDEN / release / "export.jsonl"), "--db", str(tmp_path / "new.db")]
    )

    assert result.exit_code == 0, result.output
    with recollect.open(tmp_path / "new.db") as store:
        for namespace, branches in wanted.items():
            assert store.namespace(namespace).root == branches["main"]["root"]


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_store_did_not_have_is_noticed(release: str, tmp_path: Path) -> None:
    path, wanted = copied(release, "plain", tmp_path), described(release, "plain")

    with recollect.open(path) as store:
        store.on("what-if").forget("sold")
        assert json.loads(json.dumps(said(store)))["namespaces"] != wanted["namespaces"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_store_of_a_release_with_another_byte_is_corrupt(release: str, tmp_path: Path) -> None:
    path = copied(release, "plain", tmp_path)
    data = bytearray(path.read_bytes())
    data[data.index(b"The boat is painted") + len("The boat is ")] ^= 1
    path.write_bytes(data)

    with pytest.raises(DamagedStoreError), recollect.open(path) as store:
        store.get("painted")
