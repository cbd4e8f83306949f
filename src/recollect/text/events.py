"""Events that a question names as a time: "after the move", "before Ana's wedding", "around the trip to Oslo".

The time of an event is not in the question but in the memory, where a record tells of it (`indexes.scoring.times`).
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.text.words import letters

#: The words before an event, by relation, in the languages in which dates are read; those after it for scripts without
#: spaces.
_AFTER = "after|since|nach|seit|après|depuis|después|desde|dopo|depois|após|na|sinds"
_BEFORE = "before|until|vor|bis zu|avant|jusqu'à|antes|hasta|prima|fino a|até|voor|tot"
_AROUND = "around|at the time of|um|autour|alrededor|intorno a|por volta|rond"
_OWNER = (
    r"the|my|our|his|her|their|this|that|[^\W\d_][\w-]*'s|der|dem|die|das|den|meinem|meiner|unserem|unserer|ihrem|ihrer"
    r"|seinem|seiner|le|la|les|l'|mon|ma|mes|notre|son|sa|el|los|las|mi|nuestro|nuestra|su|il|lo|gli|mio|mia|nostro"
    r"|nostra|meu|minha|nosso|nossa|seu|sua|de|het|mijn|onze|ons|zijn|haar"
)
_SPACED = regex(
    rf"\b(?:(?P<after>{_AFTER})|(?P<before>{_BEFORE})|(?P<around>{_AROUND})) "
    rf"(?:(?:de |di )?(?:{_OWNER})(?: |(?<='))|(?:del|della|dello|do|da|du|des|au|al|alla) |(?:dell|all|de l)')"
    r"(?P<event>[^\W\d_][\w'-]*(?: [\w'-]+){0,3})",
    re.IGNORECASE,
)
_UNSPACED = regex(
    "(?P<event>[\u3041-\u30ff\u3400-\u9fff]{2,8}?)(?:の?(?:(?P<after>之后|之後|以后|以後|(?<!前)[后後])|(?P<before>之前|以前|前)|(?P<around>前后|前後|頃)))"
)
#: What ends the name of an event.
_END = regex(
    r"\b(?:what|who|whom|when|where|which|why|how|did|do|does|is|are|was|were|has|have|had|can|could|will|would|and|or|i"
    r"|we|you|she|he|they|it)\b.*",
    re.IGNORECASE,
)


#: Words without which an ASCII question names no event: those above, of several the one that is not in most questions.
_WORDS = frozenset(
    "after since nach seit depuis desde dopo depois na sinds before until vor bis avant antes hasta prima fino voor "
    "tot around time um autour alrededor intorno volta rond".split()
)


#: Number of events of a question that count; further ones are passed over. Each is a search of its own.
MOST_EVENTS = 8


class NamedEvent(NamedTuple):
    """An event that a question names as a time.

    Attributes:
        relation: "after", "before" or "around".
        name: The words that name it.
    """

    relation: str
    name: str


def events(question: str) -> tuple[NamedEvent, ...]:
    """Return the first `MOST_EVENTS` events that a question, with single blanks between its words, names as times.

    >>> events("What did we buy after the move to Oslo?")
    (NamedEvent(relation='after', name='move to Oslo'),)
    >>> events("Before Ana's wedding, who was ill?"), events("What comes after tea?")
    ((NamedEvent(relation='before', name='wedding'),), ())
    """
    present = letters(question)
    if present is not None and _WORDS.isdisjoint(present):  # most questions stop here
        return ()
    out = []
    for match in islice(chain(_SPACED.finditer(question), _UNSPACED.finditer(question)), MOST_EVENTS):
        name = _END.sub("", match["event"]).strip()
        if name:
            out.append(NamedEvent(next(each for each in ("after", "before", "around") if match[each]), name))
    return tuple(out)
