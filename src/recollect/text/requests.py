"""Requests: what a question asks to be done with memories, and its words that are no part of the subject.

"Can you walk me through the order in which I brought up different aspects of my garden?" is about a garden. The rest
says that it asks for an order of events; the words of such a request occur in many texts and are not searched for.
Orders, summaries and recollections are recognised in the languages in which dates are read, other requests in English.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.text.words import letters

_SPOKEN = r"(?:conversations?|chats?|discussions?|messages?|sessions?|talks?)"
_EARLIER = r"(?:(?:previous|past|earlier|recent) )?"
_DEGREE = r"(?:(?:comprehensive|complete|full|brief|short|quick|detailed|concise|clear|thorough) )?"
_SUMMARY_OF = r"(?:summary|overview|recap|outline|timeline|list|account)"
_COUNTS = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
#: "What kind of X" asks for an X; "kind" is not part of the subject.
_KIND_OF = regex(r"(?<=\bwhat )(?:kind|type|sort)s? of\b|(?<=\bwhich )(?:kind|type|sort)s? of\b", re.IGNORECASE)
#: What speaks of the request itself, in English.
_REQUEST = regex(
    rf"\b(?:throughout|across|during|over|in|from) (?:all )?(?:of )?(?:our|my|the) {_EARLIER}{_SPOKEN}\b"
    r"|\b(?:(?:can|could|would|will) you )?(?:please )?"
    r"(?:give me|walk me through|remind me (?:of|about)|summari[sz]e|recap)\b"
    r"|\b(?:can|could|would|will) you (?:please )?(?:list|outline|describe|explain|show me)\b"
    rf"|\b(?:a|an|the) {_DEGREE}{_SUMMARY_OF} of\b"
    r"|\b(?:the )?(?:different|various) (?:aspects|parts|details|topics|things|points) (?:of|about|related to)\b"
    r"|\b(?:that |which )?(?:i|we)(?:'ve| have)? "
    r"(?:brought up|mentioned|discussed|talked about|raised|covered|shared)\b"
    rf"|\b(?:(?:mention|list|name) )?(?:only|just|exactly) (?:and only )?{_COUNTS} (?:items?|things?|points?)\b"
    r"|\b(?:over time|so far|up to now|until now|according to)\b",
    re.IGNORECASE,
)
#: Verbs of speech, which begin no question that is about them.
_SPEECH = regex(
    r"(?<=\w )\b(?:mention(?:s|ed)?|sa(?:y|ys|id)|tells?|told|describe[sd]?|share[sd]?|report(?:s|ed)?"
    r"|express(?:es|ed)?|explain(?:s|ed)?)\b",
    re.IGNORECASE,
)
_COUNTING = regex(r"\bhow (?:many|much)\b", re.IGNORECASE)
#: Words for an order of events, and for a summary, in the languages in which dates are read.
_ORDER = regex(
    r"\bin order\b(?! to\b)|\b(?:the|what|which) order\b|\bsequence\b|\bchronolog\w+|\btimeline\b|\bwalk me through\b"
    r"|\breihenfolge\b|\bordre\b|\bchronologi\w+|\bqué orden\b|\ben orden\b|\bcronol[oó]gic\w+|\bche ordine\b"
    r"|\bin ordine\b|\bvolgorde\b|\bque ordem\b|\bem ordem\b|顺序|順序|依次|时间线|時間線|順番|時系列",
    re.IGNORECASE,
)
_SUMMARY = regex(
    r"\bsummar(?:y|ies|i[sz]e)\b|\boverview\b|\brecap\b|\bzusammenfass\w+|\bfass(?:e|en|t)?\b.{1,80}\bzusammen\b|\büberblick\b"
    r"|\brésum(?:e|er|ez)\b|\b(?:un|le|petit|bref) résumé\b|\bresum(?:en|ir|o)\b"
    r"|\bresúme\w*|\briassun\w+|\briassum\w+|\bsamenvat\w+|\bvat\b.{1,80}\bsamen\b"
    r"|总结|總結|概括|概述|まとめ|要約",
    re.IGNORECASE,
)
#: The words above in a request in another language, with the verbs around them.
_REQUEST_ELSEWHERE = regex(
    r"\b(?:kannst du|könntest du|gib mir|fass(?:e|en|t)?|zusammen|zusammenfass\w+|überblick"
    r"|(?:in welcher |der )?reihenfolge|peux-tu|pourrais-tu|donne-moi|fais(?:-moi)?|résum(?:e|er|ez|é)"
    r"|(?:dans quel |par )?ordre|puedes|podrías|dame|hazme|resumen|resúme\w*|(?:en )?(?:qué )?orden"
    r"|puoi|potresti|dammi|fammi"
    r"|riassun\w+|riassum\w+|(?:in )?(?:che )?ordine"
    r"|kun je|geef me|samenvat\w+|samen|vat|(?:in welke )?volgorde|podes|pode|dá-me|resumo|resuma"
    r"|(?:em )?(?:que )?ordem|chronologi\w+|cronol[oó]gic\w+)\b"
    r"|请|請|帮我|幫我|总结|總結|概括|概述|按?(?:什么|什麼)?顺序|依次|まとめて?|要約して?"
    r"|順番に?|時系列で?|ください",
    re.IGNORECASE,
)
_RECOLLECTION = regex(
    r"\b(?:did|have|had|was|were) (?:i|we|you)\b|\b(?:i|we)'ve\b|\b(?:i|we) (?:said|mentioned|told)\b"
    r"|\byou (?:said|recommended|suggested|advised|told|mentioned)\b"
    r"|\b(?:habe?|hatten?) (?:ich|wir)\b|\b(?:hast|hattest) du\b|\bai-je\b|\bas-tu\b|\bavons-nous\b|\bavez-vous\b"
    r"|\bheb (?:ik|je)\b|\bhebben we\b|\b(?:dije|dijiste|recomendaste|mencioné|mencionaste|disseste)\b"
    r"|\b(?:ho|hai) \w+to\b",
    re.IGNORECASE,
)


#: Words without which the rules above cannot match an ASCII question, and beginnings of such words.
_ORDER_WORDS = frozenset(
    "order sequence timeline walk reihenfolge ordre orden ordine volgorde ordem summary summaries summarize summarise "
    "overview recap fass fasse fassen fasst resumen resumir resumo vat".split()
)
_ORDER_BEGINS = ("chronolog", "cronolog", "zusammenfass", "riass", "samenvat")
_RECOLLECTION_WORDS = frozenset(
    "i we you ich wir du ai as avons avez heb hebben dije dijiste recomendaste mencionaste disseste ho hai".split()
)
_KIND_WORDS = frozenset("kind kinds type types sort sorts".split())
_REQUEST_WORDS = frozenset(
    "conversation conversations chat chats discussion discussions message messages session sessions talk talks give "
    "walk remind summarize summarise recap list outline describe explain show summary overview timeline account "
    "different various brought mentioned discussed talked raised covered shared only just exactly over far now "
    "according".split()
)
_SPEECH_WORDS = frozenset(
    "mention mentions mentioned say says said tell tells told describe describes described share shares shared report "
    "reports reported express expresses expressed explain explains explained".split()
)


class AskedFor(NamedTuple):
    """The request in a question.

    Attributes:
        order: It asks in which order things were said or happened.
        summary: It asks for a summary.
        recollection: It asks what was said or done, an order or a summary included.
    """

    order: bool = False
    summary: bool = False
    recollection: bool = False


_NO_REQUEST, _RECOLLECTS = AskedFor(), AskedFor(recollection=True)


def request_of(question: str) -> AskedFor:
    """Return what a question asks to be done.

    >>> request_of("Walk me through my garden plans in order.")
    AskedFor(order=True, summary=False, recollection=True)
    >>> request_of("Did I ever buy a kettle?"), request_of("How do I clean a kettle?")
    (AskedFor(order=False, summary=False, recollection=True), AskedFor(order=False, summary=False, recollection=False))
    """
    present = letters(question)
    if present is not None:  # most questions stop here
        recollects = not _RECOLLECTION_WORDS.isdisjoint(present) and _RECOLLECTION.search(question) is not None
        if _ORDER_WORDS.isdisjoint(present) and not any(map(question.lower().__contains__, _ORDER_BEGINS)):
            return _RECOLLECTS if recollects else _NO_REQUEST
    counting = _COUNTING.search(question) is not None
    order = not counting and _ORDER.search(question) is not None
    summary = not counting and _SUMMARY.search(question) is not None
    return AskedFor(order, summary, order or summary or _RECOLLECTION.search(question) is not None)


def without_kind(question: str) -> str:
    """Return a question, with single blanks between its words, without a phrase such as "kind of".

    >>> without_kind("What kind of tea does Ana like?")
    'What  tea does Ana like?'
    """
    present = letters(question)
    return question if present is not None and _KIND_WORDS.isdisjoint(present) else _KIND_OF.sub("", question)


def subject_of(question: str, request: AskedFor) -> str:
    """Return a question, with single blanks between its words, without the words of its request.

    >>> question = "Can you give me a short summary of my garden plans so far?"
    >>> subject_of(question, request_of(question))
    '  my garden plans ?'
    """
    present = letters(question)
    subject = question
    if present is None or not _REQUEST_WORDS.isdisjoint(present):
        subject = _REQUEST.sub("", subject)
    if present is None or not _SPEECH_WORDS.isdisjoint(present):
        subject = _SPEECH.sub("", subject)
    return _REQUEST_ELSEWHERE.sub("", subject) if request.order or request.summary else subject
