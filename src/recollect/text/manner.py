"""The manner of a text: whether it is a question, is about its author, or governs later questions.

Each text has a weight by which its score is multiplied:

- What a turn asks is rarely the answer to a later question.
- What an assistant says is usually longer and less informative than what the user said.
- Texts in which people speak of themselves answer questions about them.
- A standing instruction ("always ...", "from now on ...") or preference ("I prefer ...") applies to many questions with
  which it shares few words. It is recognised when it is stored and gets a tag, which users can add or remove like any
  other.

The rules are English only. To them, a text in another language is a plain statement.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from fractions import Fraction
from functools import lru_cache

from recollect.common.regexes import regex
from recollect.text.unicode import occurs
from recollect.text.words import letters, terms

#: The tags of standing instructions and preferences, and the factors that they apply to a text's weight.
INSTRUCTION, PREFERENCE = "standing:instruction", "standing:preference"
STANDING_TAGS = {INSTRUCTION: Fraction(16, 10), PREFERENCE: Fraction(13, 10)}
#: The tags of the same wishes in imported and quoted text. They weigh as much, and govern nothing.
SAID_TAGS = {INSTRUCTION: "said:instruction", PREFERENCE: "said:preference"}
#: The tags that follow from a text, and their factors.
WISHES = STANDING_TAGS | {said: STANDING_TAGS[standing] for standing, said in SAID_TAGS.items()}
#: The maximum reduction of the weight of a question, and the factors of the other manners.
ASKING = Fraction(4, 10)
ASSISTANT = Fraction(6, 10)
OWN = Fraction(115, 100)
#: The factor of a summary: the turns that it stands for say the same in more words, and are what was said.
SUMMARISING = Fraction(1, 2)
#: Roles whose texts are not written by a person.
MACHINE_ROLES = ("assistant", "system", "tool", "developer")
#: Maximum length of a standing instruction or preference. Longer texts are pasted documents, whose instructions are not
#: those of the author.
_MAX_LENGTH = 2000

_SENTENCE_END = regex(r"(?<=[.!?])\s+|\n+")
#: A question in the first person usually also states something ("I moved to Oslo, where can I swim?").
_FIRST_PERSON = regex(r"\b(?:i|i'm|i've|i'd|i'll|my|me|mine|we|we're|we've|our|us)\b", re.IGNORECASE)
_FIRST_WORDS = frozenset("i my me mine we our us".split())
#: The beginning of a clause.
_CLAUSE = r"(?:^|[.!?:;\n]\s*|,\s*(?:and|but|so)\s+)(?:please,?\s+|and\s+|also,?\s+|just\s+|so\s+)*"
#: After "always" or "never", a verb in the imperative: no participle, and no word that continues a statement about the
#: past or present.
_IMPERATIVE = (
    r"(?!(?:a|an|the|been|had|here|there|happy|glad|good|great|nice|fun|mind|again|once|really|thought|knew|seen|done"
    r"|gone|heard|felt|got|met|loved|saw|say|give|forget|quit|stop|up|ready|worth|in|on|at|as|so|too|more|less|that|this|my|your|his|her|our|their|i|you|he|she|it"
    r"|we|they|was|were|is|are|am|has|have|did|does|would|could|a)\b)(?!\w+(?:ed|ing)\b)[a-z]"
)
_INSTRUCTION = regex(
    rf"{_CLAUSE}(?:always|never|do not ever|don't ever)\s+{_IMPERATIVE}"
    rf"|{_CLAUSE}(?:from now on|going forward|in (?:the )?future),?\s+"
    rf"(?:please\s+|always\s+|never\s+|do\s+|don't\s+)*{_IMPERATIVE}"
    rf"|{_CLAUSE}(?:whenever|every time|each time|any time|anytime)\s+(?:i|we)\s+"
    rf"(?:ask|request|mention|say|want|need|share|send)"
    rf"|{_CLAUSE}remember that i\b"
    rf"|{_CLAUSE}(?:call|address) me\s+(?!back|when|if|later|at|on|tomorrow|today|a|the|crazy|old)[a-z]"
    rf"|{_CLAUSE}(?:respond|reply|answer|write|speak)(?:\s+to me)?\s+(?:only\s+|always\s+)?in\s+[a-z]"
    rf"|{_CLAUSE}keep (?:your |the |all |any )?(?:answers?|replies|responses?|it|things) "
    r"(?:short|brief|concise|simple)\b"
    r"|\bplease (?:do not|don't) (?!worry|hesitate|mind|forget|give|be\b|feel|apologi)[a-z]"
    r"|\bwhen(?:ever)? i ask\b(?! (?:him|her|them)\b)|\bplease (?:always|never)\b"
    r"|\bi(?:'d like| want| would like) you to (?:always|never)\b"
    r"|\byou (?:should|must) (?:always|never)\b|\bmake sure (?:to|you|that you) (?:always|never)\b",
    re.IGNORECASE | re.MULTILINE,
)
_ADVERBS = r"(?:\s+(?:really|much|generally|usually|always|strongly|also|still|definitely|personally|just|honestly))*"
_PREFERENCE = regex(
    rf"\b(?:i|we)(?:'d| would)?{_ADVERBS}\s+(?:prefer|rather)\b|\bmy (?:strong |personal )?preference\b"
    rf"|\bi(?:'m| am){_ADVERBS}\s+(?:more comfortable|not (?:a (?:big |huge )?fan|into|comfortable)"
    rf"|(?:a )?(?:vegan|vegetarian)|allergic to|intolerant)\b"
    rf"|\bi{_ADVERBS}\s+(?:don't|do not|can't|cannot|won't|never){_ADVERBS}\s+(?:like|want|eat|drink|stand|tolerate)\b"
    rf"|\bi{_ADVERBS}\s+(?:hate|dislike|avoid)\b",
    re.IGNORECASE | re.MULTILINE,
)


def weight(text: str, *, assistant: bool, tags: Collection[str]) -> Fraction:
    """Return the weight of a text, 1 for a plain statement.

    >>> weight("The key is under the mat.", assistant=False, tags=()), weight("Where is it?", assistant=False, tags=())
    (Fraction(1, 1), Fraction(1, 1))
    >>> weight("Where is the key?", assistant=False, tags=()), weight("It is my key.", assistant=False, tags=())
    (Fraction(3, 5), Fraction(23, 20))
    """
    text = text.replace("\u2019", "'")
    present = letters(text)
    first_person = not assistant and (present is None or not _FIRST_WORDS.isdisjoint(present))
    return _weight(
        asking_share(text) or None,
        assistant,
        first_person and occurs(_FIRST_PERSON, text),
        tuple(tag for tag in WISHES if tag in tags) if tags and not assistant else (),
    )


@lru_cache(maxsize=4096)
def _weight(asking: Fraction | None, assistant: bool, own: bool, standing_tags: tuple[str, ...]) -> Fraction:
    out = 1 - ASKING * (asking or 0)
    if assistant:
        return out * ASSISTANT
    if own:
        out *= OWN
    for tag in standing_tags:
        out *= WISHES[tag]
    return out


_NOT_ASKING = Fraction(0)


def asking_share(text: str) -> Fraction:
    """Return the fraction of a text's content words that are in sentences which only ask a question."""
    if "?" not in text and "？" not in text:  # most texts stop here
        return _NOT_ASKING
    asking = total = 0
    for sentence in _SENTENCE_END.split(text):
        count = len(terms(sentence))
        total += count
        if sentence.rstrip("\"')* \t").endswith(("?", "？")) and not occurs(_FIRST_PERSON, sentence):
            asking += count
    return Fraction(asking, total) if asking else _NOT_ASKING


def standing_tags(text: str) -> tuple[str, ...]:
    """Return the standing tags of a text, determined by its wording.

    >>> standing_tags("Always answer in French."), standing_tags("I don't eat meat.")
    (('standing:instruction',), ('standing:preference',))
    >>> standing_tags("Always here to help!")
    ()
    """
    if len(text) > _MAX_LENGTH:
        return ()
    text = text.replace("\u2019", "'")
    low = text.lower()
    # Most texts contain the words of neither rule and stop here. (The rules, which ignore case, take some letters for
    # an "i", "s" or "k" that `lower` does not convert: texts with these are not skipped.)
    odd = not text.isascii() and any(letter in text for letter in "\u0130\u0131\u017f\u212a")
    instructs, prefers = odd or _may_instruct(low), odd or _may_prefer(low)
    if not instructs and not prefers:
        return ()
    # Runs of white space would make the rules quadratic.
    text = re.sub(r"\n\s*", "\n", re.sub(r"[^\S\n]+", " ", without_quotes(text)))
    found = ((INSTRUCTION, instructs, _INSTRUCTION), (PREFERENCE, prefers, _PREFERENCE))
    return tuple(tag for tag, may, rule in found if may and rule.search(text))


#: What is quoted: lines of a reply, code, and more than two words in quotation marks.
_QUOTED = regex(
    r"^[^\S\n]*>.*$|^```[^`]*(?:```|\Z)|\"[^\"\n]*\"|\u201c[^\u201c\u201d]*\u201d|«[^«»]*»|\u201e[^\u201e\u201c\u201d]*[\u201c\u201d]",
    re.MULTILINE,
)


def _hidden(found: re.Match[str]) -> str:
    """Return blanks for a quotation; one of a name or two is left as it is."""
    return found[0] if found[0][0] in _MARKS and found[0].strip(_MARKS).count(" ") < 2 else " " * len(found[0])


_MARKS = '"\u201c\u201d\u201e«» '


#: What introduces a text that is pasted up to its end, and the first line of a mail.
_PASTED = regex(
    r"\b(?:summari[sz]e|translate|rewrite|rephrase|proofread|shorten|copied|pasted|forwarded|e-?mail|letter|article|page"
    r"|manual|sign|says|said|wrote|writes|reads)\b[^\n:.!?]{0,60}:.*|^(?:subject|from|to|date):.*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def without_quotes(text: str) -> str:
    """Return a text without what it quotes or what was pasted, which are not the words of its author."""
    if ":" in text:
        text = _PASTED.sub("", text)
    if not any(mark in text for mark in '">`\u201c\u201e«'):
        return text
    return _QUOTED.sub(_hidden, text)


def standing_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the sentences of a text that state an instruction or a preference, as offsets; () if all of it does.

    >>> standing_spans("I fly on Friday. I prefer window seats. My boss is Karl.")
    ((17, 39),)
    >>> standing_spans("I prefer window seats.")
    ()
    """
    found: list[tuple[int, int]] = []
    own = _QUOTED.sub(_hidden, _PASTED.sub(_blank, text))
    others = own != text
    for start, end in _sentences(text):
        if not standing_tags(own[start:end]):
            others = True
        elif found and not text[found[-1][1] : start].strip():
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return tuple(found) if others else ()


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a text, as offsets without blanks around them."""
    at = 0
    for gap in (*(found.span() for found in _SENTENCE_END.finditer(text)), (len(text), len(text))):
        sentence = text[at : gap[0]]
        if sentence.strip():
            begin = at + len(sentence) - len(sentence.lstrip())
            yield begin, begin + len(sentence.strip())
        at = gap[1]


#: Alternatives of `_INSTRUCTION` whose first words are common without the rest.
_CALLS_ME = regex(r"(?:call|address)\s+me\s")
_ANSWERS_IN = regex(r"(?:respond|reply|answer|write|speak)(?:\s+to\s+me)?\s+(?:only\s+|always\s+)?in\s")


def _may_instruct(low: str) -> bool:
    """Return whether a lower-case text has the words without which `_INSTRUCTION` cannot match."""
    return (
        # never, whenever, every time, not ever
        ("ever" in low and ("never" in low or "when" in low or "time" in low or "not" in low or "n't" in low))
        or "always" in low
        or ("from" in low and "now" in low)
        or "forward" in low
        or "future" in low
        or (("each" in low or "any" in low) and "time" in low)
        or ("remember" in low and "that" in low)
        or (("call" in low or "address" in low) and _CALLS_ME.search(low) is not None)
        or (
            ("respond" in low or "reply" in low or "answer" in low or "write" in low or "speak" in low)
            and _ANSWERS_IN.search(low) is not None
        )
        or "keep" in low
        or ("please" in low and ("not" in low or "don't" in low))
        or ("when" in low and "ask" in low)
    )


def _may_prefer(low: str) -> bool:
    """Return whether a lower-case text has the words without which `_PREFERENCE` cannot match."""
    return (
        "prefer" in low
        or "rather" in low
        or "comfortable" in low
        or "vegan" in low
        or "vegetarian" in low
        or "allergic" in low
        or "intolerant" in low
        or "hate" in low
        or "dislike" in low
        or "avoid" in low
        or ("not" in low and ("fan" in low or "into" in low))
        or (
            ("n't" in low or "not" in low or "never" in low)
            and (
                "like" in low or "want" in low or "eat" in low or "drink" in low or "stand" in low or "tolerate" in low
            )
        )
    )
