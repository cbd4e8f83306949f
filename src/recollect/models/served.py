"""Models behind a URL: the chat completions of OpenAI, which many servers provide, and the messages of Anthropic.

A reply is read within a deadline and up to a size, and must have the shape of the API; anything else is a ModelError.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from recollect.arguments.checks import check_count
from recollect.errors import InvalidArgumentError, ModelError, ModelRefusedError, ModelUnavailableError
from recollect.models.base import WINDOW
from recollect.models.remote import ENVELOPE_BYTES, Errors, RemoteClient, check_key, check_timeout, checked_url

#: Maximum number of bytes of a response for each token of the reply.
_TOKEN_BYTES = 64
_ERRORS = Errors(ModelError, ModelRefusedError, ModelUnavailableError)
_ANTHROPIC_VERSION = "2023-06-01"


class Chat:
    """A `Model` behind the chat completions API of OpenAI: OpenAI, Ollama, vLLM, llama.cpp, LM Studio and others.

    Args:
        model: The name of the model on the server.
        url: The URL up to and including the version: "https://api.openai.com/v1".
        key: Sent to the server and nowhere else; None for servers that need none.
        provider: The first part of the model's name.
        window: The number of tokens that a prompt and its reply may have together.
        timeout_s: Maximum seconds from sending a request to the end of its response. Each retry has the same time.
        retries: Maximum number of times that a request is sent again after a temporary failure.
        sleep: Waits the number of seconds that is passed to it; for tests.
        key_variable: The environment variable for the key, named in the error message if it is missing.

    Raises:
        InvalidArgumentError: An argument is invalid.
    """

    _PATH = "/chat/completions"

    def __init__(
        self,
        model: str,
        *,
        url: str,
        key: str | None = None,
        provider: str = "openai",
        window: int = WINDOW,
        timeout_s: float = 60.0,
        retries: int = 2,
        sleep: Callable[[float], object] = time.sleep,
        key_variable: str = "",
    ) -> None:
        if not isinstance(model, str) or not model:
            raise InvalidArgumentError("model", model, "must be the name of a model")
        base = checked_url(url)
        check_key(key)
        check_timeout(timeout_s)
        for name, value, least in (("window", window, 512), ("retries", retries, 0)):
            check_count(name, value, least=least)
        self.name = f"{provider}/{model}"
        self.window = window
        self._model = model
        self._key = key
        self._key_variable = key_variable
        self._retries = retries
        self._client = RemoteClient(
            self.name,
            base + self._PATH,
            headers={} if key is None else self._headers(key),
            key=key,
            errors=_ERRORS,
            extra=(f"the model {self.name}", "models"),
            timeout_s=timeout_s,
            sleep=sleep,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self._client.url}>"

    def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        """Return the reply to a prompt. See `Model.complete`."""
        if self._key is None and self._key_variable:
            raise ModelUnavailableError(self.name, f"it needs a key: set {self._key_variable}")
        body = self._body(prompt, system, max_tokens)
        answer = self._client.request(body, ENVELOPE_BYTES + max_tokens * _TOKEN_BYTES, self._retries)
        reply = self._reply(answer)
        if reply is None:
            raise ModelError(self.name, "its response has no text of a reply")
        return reply

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        self._client.close()

    # The API

    def _headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def _body(self, prompt: str, system: str, max_tokens: int) -> dict[str, Any]:
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        return {"model": self._model, "messages": messages, "max_tokens": max_tokens, "temperature": 0}

    def _reply(self, answer: Any) -> str | None:
        match answer:
            case {"choices": [{"message": {"content": str(text)}}, *_]} if text:
                return text
        return None


class Anthropic(Chat):
    """A `Model` behind the messages API of Anthropic. It takes the arguments of `Chat`; the URL has no version.

    Source:
        https://docs.anthropic.com/en/api/messages
    """

    _PATH = "/v1/messages"

    def __init__(self, model: str, *, url: str, provider: str = "anthropic", **options: Any) -> None:
        super().__init__(
            model, url=url.removesuffix("/v1") if isinstance(url, str) else url, provider=provider, **options
        )

    def _headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}

    def _body(self, prompt: str, system: str, max_tokens: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._model, "max_tokens": max_tokens, "temperature": 0}
        body["messages"] = [{"role": "user", "content": prompt}]
        return {**body, "system": system} if system else body

    def _reply(self, answer: Any) -> str | None:
        blocks = answer.get("content") if isinstance(answer, Mapping) else None
        if not isinstance(blocks, list):
            return None
        texts = [each.get("text") for each in blocks if isinstance(each, Mapping) and each.get("type") == "text"]
        return "".join(text for text in texts if isinstance(text, str)) or None
