"""From "provider/model" text and the environment to an embedder.

The text is an argument, or the variable LLM_EMBEDDING_MODEL; keys and addresses come from the variables that the
providers' own tools use. Making an embedder imports no library, reads no model and opens no connection: what is
missing is told when a text is first embedded.

>>> embedder_from("openai/text-embedding-3-small", {"OPENAI_API_KEY": "sk-secret"})
<Endpoint 'openai/text-embedding-3-small' at https://api.openai.com/v1/embeddings>
>>> embedder_from("ollama/nomic-embed-text", {"OLLAMA_HOST": "gpu-box:11434"})
<Endpoint 'ollama/nomic-embed-text' at http://gpu-box:11434/v1/embeddings>
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from recollect.embedding.base import Embedder
from recollect.errors import InvalidArgumentError

#: Names the embedder where no argument does.
MODEL_VARIABLE = "LLM_EMBEDDING_MODEL"
#: As an argument: no embedder, whatever the variable says.
NO_EMBEDDER = "none"


class Server(NamedTuple):
    """A provider that is asked over HTTP: its address, the variables that hold another one and the key."""

    url: str
    url_variable: str
    key_variable: str
    key_needed: bool = False


SERVERS = {
    "openai": Server("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", key_needed=True),
    "voyage": Server("https://api.voyageai.com/v1", "VOYAGE_BASE_URL", "VOYAGE_API_KEY", key_needed=True),
    "ollama": Server("http://127.0.0.1:11434", "OLLAMA_HOST", "OLLAMA_API_KEY"),
    "vllm": Server("http://127.0.0.1:8000/v1", "VLLM_BASE_URL", "VLLM_API_KEY"),
    "lmstudio": Server("http://127.0.0.1:1234/v1", "LMSTUDIO_BASE_URL", "LMSTUDIO_API_KEY"),
}


def embedder_from(text: str, environment: Mapping[str, str] | None = None) -> Embedder:
    """The embedder that "provider/model" names.

    Providers: hashed (built in, no model), sentence-transformers, model2vec, and the servers `SERVERS`.

    Raises: InvalidArgumentError for another provider, or where the model is missing.
    """
    environment = os.environ if environment is None else environment
    provider, _, model = text.partition("/") if isinstance(text, str) else ("", "", "")
    provider = provider.lower()
    if provider == "hashed" and model in ("", "1"):
        from recollect.embedding.hashed import Hashed

        return Hashed()
    if provider not in (*LOCAL, *SERVERS) or not model:
        known = ", ".join((*LOCAL, *SERVERS))
        raise InvalidArgumentError("embedder", text, f"must be 'hashed', or PROVIDER/MODEL with one of {known}")
    return LOCAL[provider](model) if provider in LOCAL else _served(provider, model, environment)


def embedder_of_environment(environment: Mapping[str, str] | None = None) -> Embedder | None:
    """The embedder that LLM_EMBEDDING_MODEL names; None where it is not set, empty or "none"."""
    environment = os.environ if environment is None else environment
    text = environment.get(MODEL_VARIABLE, "").strip()
    return None if text in ("", NO_EMBEDDER) else embedder_from(text, environment)


def _served(provider: str, model: str, environment: Mapping[str, str]) -> Embedder:
    server = SERVERS[provider]
    named = environment.get(server.url_variable, "").strip()
    url = named or server.url
    if provider == "ollama":
        url = _ollama_url(url)
    # A server of one's own that speaks a provider's language may want no key.
    needed = server.key_variable if server.key_needed and not named else ""
    key = environment.get(server.key_variable, "").strip() or None
    if provider == "voyage":
        from recollect.embedding.voyage import Voyage

        return Voyage(model, url=url, key=key, key_variable=needed)
    from recollect.embedding.endpoint import Endpoint

    return Endpoint(model, url=url, key=key, provider=provider, key_variable=needed)


def _ollama_url(host: str) -> str:
    """OLLAMA_HOST as an address: it may lack scheme and port, and 0.0.0.0 (where it listens) is this machine.

    >>> _ollama_url("0.0.0.0"), _ollama_url("https://models.example/"), _ollama_url("[::1]:5000")
    ('http://127.0.0.1:11434/v1', 'https://models.example/v1', 'http://[::1]:5000/v1')
    """
    scheme, found, rest = host.partition("://")
    if not found:
        scheme, rest = "http", host
    place, _, path = rest.partition("/")
    if not found and ":" not in place.rpartition("]")[2]:
        place += ":11434"
    if place.startswith("0.0.0.0"):
        place = place.replace("0.0.0.0", "127.0.0.1", 1)
    path = path.rstrip("/")
    return f"{scheme}://{place}/" + (path if path.endswith("v1") else f"{path}/v1".lstrip("/"))


def _sentence_transformers(model: str) -> Embedder:
    from recollect.embedding.sentence_transformers import SentenceTransformers

    return SentenceTransformers(model)


def _model2vec(model: str) -> Embedder:
    from recollect.embedding.model2vec import Model2Vec

    return Model2Vec(model)


#: Providers whose models run in this process.
LOCAL: dict[str, Callable[[str], Embedder]] = {
    "sentence-transformers": _sentence_transformers,
    "model2vec": _model2vec,
}
