"""The protocol of a language model: a prompt in, a text out; and the check that every reply passes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

from recollect.arguments.checks import check_count
from recollect.errors import InvalidArgumentError, ModelError, RecollectError

#: The number of tokens that a prompt and its reply may have, for a model that states none.
WINDOW = 8192
#: Maximum number of characters of a reply for each token that was asked for, and in addition.
_PER_TOKEN, _SPARE = 40, 10_000


@runtime_checkable
class Model(Protocol):
    """A language model. It may be slow, may fail, and may reply anything."""

    @property
    def name(self) -> str:
        """Provider and model, such as "openai/gpt-4o-mini"."""
        ...

    @property
    def window(self) -> int:
        """The number of tokens that a prompt and its reply may have together."""
        ...

    def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        """Return the reply to a prompt.

        Args:
            prompt: The prompt.
            system: The system prompt; "" for none.
            max_tokens: Maximum number of tokens of the reply.

        Raises:
            ModelError: There is no reply. Any other exception is converted to this one.
            MissingExtraError: A library is not installed.
        """
        ...


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
        from recollect.models.environment import model_from

        return model_from(value, window=window)
    if isinstance(value, Model) and not isinstance(value, type):
        return value
    if callable(value):
        return _Function(value, WINDOW if window is None else window)
    raise InvalidArgumentError("model", value, "must be a model, a function of a prompt, or PROVIDER/MODEL")


class Prompted:
    """What asks a model with one prompt: the base class of a summariser and an extractor.

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


def completed(model: Model, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
    """Return the reply of a model, if it is a text of a reasonable size.

    Raises:
        ModelError: The model failed, or its reply is no text, is empty or is too long.
        MissingExtraError: A library is not installed.
    """
    try:
        reply: object = model.complete(prompt, system=system, max_tokens=max_tokens)
    except RecollectError:
        raise
    except Exception as error:
        raise ModelError(model.name, f"{type(error).__name__}: {error}") from error
    if not isinstance(reply, str):
        raise ModelError(model.name, f"its reply is {type(reply).__name__}, not text")
    if not reply.strip():
        raise ModelError(model.name, "its reply is empty")
    if len(reply) > max_tokens * _PER_TOKEN + _SPARE:
        raise ModelError(model.name, f"its reply has {len(reply)} characters, far more than {max_tokens} tokens")
    return reply
