"""Creation of models from "provider/model" text, the environment, and functions.

The text is an argument or the variable RECOLLECT_MODEL; keys and addresses come from the variables that the providers'
own tools use. Creating a model imports no library and opens no connection.

>>> model_from("openai/gpt-4o-mini", {"OPENAI_API_KEY": "sk-secret"})
<Chat 'openai/gpt-4o-mini' at https://api.openai.com/v1/chat/completions>
>>> model_from("anthropic/claude-3-5-haiku-latest", {"ANTHROPIC_API_KEY": "sk-secret"})
<Anthropic 'anthropic/claude-3-5-haiku-latest' at https://api.anthropic.com/v1/messages>
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from recollect.arguments.checks import check_count
from recollect.errors import InvalidArgumentError
from recollect.models.base import WINDOW, Model
from recollect.models.served import Anthropic, Chat
from recollect.models.servers import ALL, address_of

#: Environment variable that names the model if no argument does.
MODEL_VARIABLE = "RECOLLECT_MODEL"
#: As an argument or in the variable: no model.
NO_MODEL = "none"
PROVIDERS = ("openai", "anthropic", "ollama", "vllm", "llamacpp", "lmstudio")


def model_from(text: str, environment: Mapping[str, str] | None = None, *, window: int | None = None) -> Model:
    """Return the model for "provider/model" text.

    Providers: openai (and any server with its API, by OPENAI_BASE_URL), anthropic, ollama, vllm, llamacpp, lmstudio.

    Args:
        text: "provider/model".
        environment: The environment variables. Default: those of the process.
        window: The number of tokens that a prompt and its reply may have together; default: 8,192.

    Raises:
        InvalidArgumentError: The provider is unknown, or the model is missing.
    """
    environment = os.environ if environment is None else environment
    provider, _, model = text.partition("/") if isinstance(text, str) else ("", "", "")
    provider = provider.lower()
    if provider not in PROVIDERS or not model:
        raise InvalidArgumentError("model", text, f"must be PROVIDER/MODEL with one of {', '.join(PROVIDERS)}")
    url, key, needed = address_of(ALL[provider], environment)
    kind = Anthropic if provider == "anthropic" else Chat
    size = WINDOW if window is None else window
    return kind(model, url=url, key=key, provider=provider, key_variable=needed, window=size)


def model_of_environment(environment: Mapping[str, str] | None = None) -> Model | None:
    """Return the model that RECOLLECT_MODEL names; None if it is not set, or is "none".

    Raises:
        InvalidArgumentError: It names no model.
    """
    environment = os.environ if environment is None else environment
    text = environment.get(MODEL_VARIABLE, "").strip()
    return None if text in ("", NO_MODEL) else model_from(text, environment)


def as_model(value: Any, *, window: int | None = None) -> Model:
    """Return a model: `value` itself, a function from a prompt to a reply, or what "provider/model" text names.

    >>> as_model(lambda prompt: prompt.upper()).complete("hello")
    'HELLO'

    Args:
        value: The model, the function or the text (`model_from`).
        window: The window of a function or of a named model, in tokens.

    Raises:
        InvalidArgumentError: The model is not one of these, or the window is not an integer of at least 512.
    """
    check_count("window", window, least=512, optional=True)
    if isinstance(value, str):
        return model_from(value, window=window)
    if isinstance(value, Model) and not isinstance(value, type):
        return value
    if callable(value):
        return _Function(value, WINDOW if window is None else window)
    raise InvalidArgumentError("model", value, "must be a model, a function of a prompt, or PROVIDER/MODEL")


class _Function:
    """A function from a prompt to a reply as a model."""

    def __init__(self, function: Callable[[str], str], window: int) -> None:
        self._function = function
        self.name = f"function/{getattr(function, '__name__', type(function).__name__)}"
        self.window = window

    def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        return self._function(f"{system}\n\n{prompt}" if system else prompt)

    def __repr__(self) -> str:
        return f"<model {self.name!r}>"


class Prompted:
    """Base class of what asks a model with one prompt: a summariser and an extractor.

    Args:
        model: A model, a function from a prompt to a reply, or "provider/model" text (`as_model`).
        window: The window of the model in tokens, if `model` is a function or a text.

    Raises:
        InvalidArgumentError: The value is not a model.
    """

    #: The prompt and its version.
    prompt: ClassVar[str]

    def __init__(self, model: Any, *, window: int | None = None) -> None:
        self._model = as_model(model, window=window)

    @property
    def name(self) -> str:
        """The model and the version of the prompt."""
        return f"{self._model.name} {self.prompt}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"
