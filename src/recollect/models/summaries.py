"""`ModelSummariser`: summaries by a language model, for `Memory.consolidate`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from recollect.errors import ModelError
from recollect.models.base import completed
from recollect.models.environment import Prompted
from recollect.models.prompts import filled
from recollect.text.pieces import SENTENCE_END
from recollect.text.summaries import LONGEST

#: Tokens of the window that are kept for the prompt's own text and for the reply.
RESERVE = 1536
#: The share of the rest that texts may fill, and the characters of a token.
_FILLED, _CHARACTERS = Fraction(92, 100), 4
#: Characters around each text: its marks and line ends.
_AROUND = 40
_REPLY_TOKENS = 1024


class ModelSummariser(Prompted):
    """Summarises texts with a language model, for `Memory.consolidate`. It takes the arguments of `Prompted`."""

    prompt = "summarise-1"

    def fitting(self, texts: Sequence[str]) -> int:
        """Return how many of the texts, from the first on, fit in the window of the model.

        They may fill (window - reserve) x 0.92 tokens, at four characters a token.
        """
        room = int((self._model.window - RESERVE) * _FILLED) * _CHARACTERS
        for count, text in enumerate(texts):
            room -= len(text) + _AROUND
            if room < 0:
                return count
        return len(texts)

    def __call__(self, texts: Sequence[str]) -> str:
        """Return a summary of at most 2,000 characters. A longer reply is cut after a sentence.

        Raises:
            ModelError: The model failed, or replied with something else than a text.
        """
        reply = completed(self._model, filled(self.prompt, texts), max_tokens=_REPLY_TOKENS).strip()
        if len(reply) <= LONGEST:
            return reply
        ends = [found.end() for found in SENTENCE_END.finditer(reply[: LONGEST + 1]) if found.end() <= LONGEST]
        cut = reply[: ends[-1]] if ends else reply[:LONGEST].rpartition(" ")[0]
        if not cut.strip():
            raise ModelError(self._model.name, f"its summary has {len(reply)} characters and no end of a sentence")
        return cut
