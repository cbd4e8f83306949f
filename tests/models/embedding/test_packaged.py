"""Embedders with pinned files: where they come from, and what is refused. `make test-models` runs the models."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recollect
from recollect.errors import EmbedderUnavailableError, InvalidArgumentError, MissingExtraError
from recollect.models.embedding import packaged
from recollect.models.embedding.base import Embedder, Floors
from recollect.models.embedding.environment import PACKAGED, embedder_from


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(packaged, "distribution", distribution)


class Small(packaged.Packaged):
    """A model of two files: each byte of a text selects a row of the second one."""

    name, dimension, extra, measured = "small/1", 2, "small", Floors()
    files = tuple(
        packaged._File("none", f"none/{name}", hashlib.sha256(content).hexdigest())
        for name, content in (("words.json", b"{}"), ("table.bin", bytes(range(8))))
    )

    def _load(self, *paths: Path) -> Any:
        return np.frombuffer(paths[1].read_bytes(), dtype=np.uint8).reshape(4, 2)

    def _vector(self, text: str, asking: bool) -> Any:
        return self._loaded[len(text) % 4]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "words.json").write_bytes(b"{}")
    (tmp_path / "table.bin").write_bytes(bytes(range(8)))
    return tmp_path


@pytest.mark.parametrize("provider", PACKAGED)
def test_an_embedder_without_its_package_says_which_extra_installs_it(provider: str, uninstalled: None) -> None:
    embedder = embedder_from(provider)
    assert isinstance(embedder, Embedder)
    assert embedder.name.startswith(f"{provider}/")
    assert embedder.dimension in (256, 384)
    with pytest.raises(MissingExtraError, match=rf"pip install 'recollect\[{provider}\]"):
        embedder.embed(["a"])


@pytest.mark.parametrize("provider", PACKAGED)
def test_a_folder_takes_the_place_of_the_package(provider: str, uninstalled: None, tmp_path: Path) -> None:
    embedder = embedder_from(f"{provider}/{tmp_path}")
    assert embedder.name == embedder_from(provider).name
    with pytest.raises(EmbedderUnavailableError, match=r"cannot be read \(No such file or directory\); it needs"):
        embedder.embed(["a"])


def test_files_with_the_right_contents_are_used(folder: Path) -> None:
    assert Small(folder).embed(["", "abc"]).tolist() == [[0, 1], [6, 7]]
    with recollect.open(":memory:", embedder=Small(folder)) as memory:
        memory.remember("abc", id="a")
        assert memory.embed_all() == 1
        assert memory.recall("xyz")[0].why.cosine == 1.0


def test_a_file_with_other_contents_is_refused(folder: Path) -> None:
    (folder / "table.bin").write_bytes(bytes(8))
    with pytest.raises(EmbedderUnavailableError, match=r"table.bin is another file .* SHA-256 af5570f5"):
        Small(folder).embed(["a"])


def test_floors_can_be_set_and_are_checked(folder: Path) -> None:
    assert Small(folder, floors=Floors(0.2, 0.3, 1.0)).floors == Floors(0.2, 0.3, 1.0)
    with pytest.raises(InvalidArgumentError, match="floors"):
        Small(folder, floors=Floors(0.4, 0.3))
