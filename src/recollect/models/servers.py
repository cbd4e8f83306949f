"""Where the servers of models are, and which environment variables say so: those that the providers' own tools use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Server(NamedTuple):
    """A provider with an HTTP API.

    Attributes:
        url: The default address.
        url_variable: The environment variable for another address.
        key_variable: The environment variable for the key.
        key_needed: Whether the default address requires a key.
    """

    url: str
    url_variable: str
    key_variable: str
    key_needed: bool = False


#: The providers by the first part of the name of a model.
ALL = {
    "anthropic": Server("https://api.anthropic.com", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", key_needed=True),
    "openai": Server("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", key_needed=True),
    "voyage": Server("https://api.voyageai.com/v1", "VOYAGE_BASE_URL", "VOYAGE_API_KEY", key_needed=True),
    "ollama": Server("http://127.0.0.1:11434", "OLLAMA_HOST", "OLLAMA_API_KEY"),
    "vllm": Server("http://127.0.0.1:8000/v1", "VLLM_BASE_URL", "VLLM_API_KEY"),
    "llamacpp": Server("http://127.0.0.1:8080/v1", "LLAMACPP_BASE_URL", "LLAMACPP_API_KEY"),
    "lmstudio": Server("http://127.0.0.1:1234/v1", "LMSTUDIO_BASE_URL", "LMSTUDIO_API_KEY"),
}


def address_of(server: Server, environment: Mapping[str, str]) -> tuple[str, str | None, str]:
    """Return the URL of a server, its key, and the variable of the key if it needs one and has none.

    Args:
        environment: The environment variables.
    """
    own_url = environment.get(server.url_variable, "").strip()
    url = own_url or server.url
    if server.url_variable == "OLLAMA_HOST":
        url = ollama_url(url)
    # A private server with the API of a provider may not require a key.
    needed = server.key_variable if server.key_needed and not own_url else ""
    return url, environment.get(server.key_variable, "").strip() or None, needed


def ollama_url(host: str) -> str:
    """Return OLLAMA_HOST as a URL.

    The variable may lack scheme and port. 0.0.0.0, on which a server listens, becomes 127.0.0.1.

    >>> ollama_url("0.0.0.0"), ollama_url("https://models.example/"), ollama_url("[::1]:5000")
    ('http://127.0.0.1:11434/v1', 'https://models.example/v1', 'http://[::1]:5000/v1')
    """
    scheme, found, rest = host.partition("://")
    if not found:
        scheme, rest = "http", host
    host_port, _, path = rest.partition("/")
    if not found and ":" not in host_port.rpartition("]")[2]:
        host_port += ":11434"
    if host_port.startswith("0.0.0.0"):
        host_port = host_port.replace("0.0.0.0", "127.0.0.1", 1)
    path = path.rstrip("/")
    return f"{scheme}://{host_port}/" + (path if path.endswith("v1") else f"{path}/v1".lstrip("/"))
