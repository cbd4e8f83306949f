"""Creation of embedders from "provider/model" text and the environment.

The text is an argument or the variable RECOLLECT_EMBEDDER; keys and addresses come from the variables that the
providers' own tools use. LLM_EMBEDDING_MODEL, which several tools read, counts only if it names a provider and a model
that are known here. Creating an embedder imports no library, reads no model and opens no connection. Errors such
as a missing library or key are raised when the first text is embedded.

>>> embedder_from("minilm")
<MiniLM 'minilm/all-MiniLM-L6-v2-int8-160'>
>>> embedder_from("openai/text-embedding-3-small", {"OPENAI_API_KEY": "sk-secret"})
<Endpoint 'openai/text-embedding-3-small' at https://api.openai.com/v1/embeddings>
>>> embedder_from("ollama/nomic-embed-text", {"OLLAMA_HOST": "gpu-box:11434"})
<Endpoint 'ollama/nomic-embed-text' at http://gpu-box:11434/v1/embeddings>
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from recollect.errors import InvalidArgumentError
from recollect.models.embedding.base import Embedder, Unusable
from recollect.models.servers import ALL, address_of
from recollect.quoting import shown

_log = logging.getLogger("recollect")
#: Environment variable that names the embedder if no argument does.
EMBEDDER_VARIABLE = "RECOLLECT_EMBEDDER"
#: A variable of other tools, with names of their own, which is read if RECOLLECT_EMBEDDER is not set.
SHARED_VARIABLE = "LLM_EMBEDDING_MODEL"
#: As an argument: no embedder, even if the variable is set.
NO_EMBEDDER = "none"


#: The providers of embeddings with an HTTP API.
SERVERS = {name: server for name, server in ALL.items() if name in ("openai", "voyage", "ollama", "vllm", "lmstudio")}


def embedder_from(text: str, environment: Mapping[str, str] | None = None) -> Embedder:
    """Return the embedder for "provider/model" text.

    Providers: those in `PACKAGED`, whose model is a folder or left out; hashed (built in, no model); those in `LOCAL`;
    and the servers in `SERVERS`.

    Args:
        text: "provider/model", or "provider" alone if its model can be left out.
        environment: The environment variables. Default: those of the process.

    Raises:
        InvalidArgumentError: The provider is unknown, or the model is missing.
    """
    environment = os.environ if environment is None else environment
    provider, _, model = text.partition("/") if isinstance(text, str) else ("", "", "")
    provider = provider.lower()
    if provider == "hashed" and model in ("", "1"):
        from recollect.models.embedding.hashed import Hashed

        return Hashed()
    if provider in PACKAGED:
        return _packaged(provider, model)
    if provider not in (*LOCAL, *SERVERS) or not model:
        alone, known = ", ".join((*PACKAGED, "hashed")), ", ".join((*LOCAL, *SERVERS))
        raise InvalidArgumentError("embedder", text, f"must be one of {alone}, or PROVIDER/MODEL with one of {known}")
    return LOCAL[provider](model) if provider in LOCAL else _served(provider, model, environment)


def embedder_of_environment(environment: Mapping[str, str] | None = None) -> Embedder | None:
    """Return the embedder that the environment names.

    A memory opens and recalls whatever a variable says, so an invalid RECOLLECT_EMBEDDER gives an `Unusable` embedder.

    Returns:
        The embedder; None if no variable names one, or RECOLLECT_EMBEDDER is "none".
    """
    environment = os.environ if environment is None else environment
    text = environment.get(EMBEDDER_VARIABLE, "").strip()
    if text:
        try:
            return None if text == NO_EMBEDDER else embedder_from(text, environment)
        except InvalidArgumentError as error:
            return Unusable(f"{EMBEDDER_VARIABLE} = {shown(text)}", f"it {error.args[2]}")
    text = environment.get(SHARED_VARIABLE, "").strip()
    if ignored := ignored_variable(environment):
        _log.debug("%s", ignored)
    return embedder_from(text, environment) if text and not ignored else None


def ignored_variable(environment: Mapping[str, str] | None = None) -> str:
    """Return why LLM_EMBEDDING_MODEL is not used, although it is set; "" if it is used or not set."""
    environment = os.environ if environment is None else environment
    text = environment.get(SHARED_VARIABLE, "").strip()
    if not text or environment.get(EMBEDDER_VARIABLE, "").strip():
        return ""
    provider, _, model = text.partition("/")
    if provider.lower() in (*LOCAL, *SERVERS) and model:
        return ""
    return (
        f"{SHARED_VARIABLE} = {shown(text)} is ignored: it is not PROVIDER/MODEL; {EMBEDDER_VARIABLE} sets an embedder"
    )


def _packaged(provider: str, folder: str) -> Embedder:
    from recollect.models.embedding import packaged

    made: Callable[[str | None], Embedder] = getattr(packaged, PACKAGED[provider])
    return made(folder or None)


def _served(provider: str, model: str, environment: Mapping[str, str]) -> Embedder:
    url, key, needed = address_of(SERVERS[provider], environment)
    if provider == "voyage":
        from recollect.models.embedding.endpoint import Voyage

        return Voyage(model, url=url, key=key, key_variable=needed)
    from recollect.models.embedding.endpoint import Endpoint

    return Endpoint(model, url=url, key=key, provider=provider, key_variable=needed)


def _sentence_transformers(model: str) -> Embedder:
    from recollect.models.embedding.local import SentenceTransformers

    return SentenceTransformers(model)


def _model2vec(model: str) -> Embedder:
    from recollect.models.embedding.local import Model2Vec

    return Model2Vec(model)


#: Providers whose files are pinned, and the names of their classes (`models.embedding.packaged`).
PACKAGED = {"minilm": "MiniLM", "static": "Static", "multilingual": "Multilingual"}
#: Providers whose models run in this process.
LOCAL: dict[str, Callable[[str], Embedder]] = {
    "sentence-transformers": _sentence_transformers,
    "model2vec": _model2vec,
}
