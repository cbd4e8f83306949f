"""The protocol of a language model: a prompt in, a text out; and the check that every reply passes through."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from recollect.errors import ModelError, RecollectError

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

    @property
    def window(self) -> int:
        """The number of tokens that a prompt and its reply may have together."""

    def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        """Return the reply to a prompt.

        Args:
            system: The system prompt; "" for none.
            max_tokens: Maximum number of tokens of the reply.

        Raises:
            ModelError: There is no reply. Any other exception is converted to this one.
            MissingExtraError: A library is not installed.
        """


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
