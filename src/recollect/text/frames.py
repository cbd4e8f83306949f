"""Frames of questions: words that ask what was said, and are no part of it.

"What did Ana say about tea?" is about tea, and "what do you know about Ana?" about nothing but Ana. The words of a
frame are verbs of saying, telling, mentioning, talking and knowing, and "message", in every language that is detected.
In a text they are words like any other.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cache
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.text.folding import folded
from recollect.text.languages import ENGLISH, stop_words

#: The words of frames by language. A word that is a stop word of its language need not be listed.
_FRAMES = """
da: sagde siger sige sagt fortalte fortæller fortalt fortæl nævnte nævner nævnt talte taler talt snakkede snakker ved
vidste besked beskeder
de: sagen sagt sagte sagtest sagst sagten gesagt erzählen erzählt erzähl erzähle erzählte erwähnt erwähnte gesprochen
spricht sprach geredet redet meinte gemeint weißt weiß wisst wissen nachricht nachrichten hatte hatten hast
en: say says said saying tell tells told telling mention mentions mentioned mentioning talk talks talked talking speak
speaks spoke spoken speaking know knows knew message messages
es: dijo dijiste dijeron dice decir dicho digo dime contó contaste contar cuenta cuéntame contado mencionó mencionaste
mencionado menciona habló hablaste habla hablado hablar sabe sabes saber mensaje mensajes acerca has ha haya
fi: sanoi sanoit sanoa sanonut sanoo kertoi kertoa kertonut kerro mainitsi maininnut puhui puhunut puhuu tiedät tietää
tiedämme viesti viestit
fr: dit dire disait disent raconte raconté raconter racontait mentionne mentionné parle parlé parler parlait sait
savez sais savoir message messages moi as avez
hu: mondott mond mondta mondtál mesélt mesél mesélj említett említette beszélt beszél tudsz tud tudunk üzenet üzenetek
mit miről ról ről
it: detto dice dire disse dimmi raccontato racconta raccontami menzionato menziona parlato parla parlava sai sa sapete
messaggio messaggi hai su
nl: zei zegt zeggen gezegd vertelde vertelt vertellen verteld vertel noemde genoemd sprak spreekt gesproken praat
praatte gepraat weet weten bericht berichten had hebt
no: sa sier si sagt fortalte forteller fortalt fortell nevnte nevner nevnt snakket snakker vet visste melding
meldinger
pt: disse disseste diz dizer dito diga contou contaste conta contar conte mencionou mencionado falou falaste fala
falado sabe sabes saber mensagem mensagens sobre
ro: spus spune spui zis zice povestit povestește menționat vorbit vorbește știi știe știm mesaj mesaje despre
ru: сказал сказала сказали сказать говорит говорил говорила говорили рассказал рассказала рассказали расскажи упомянул
упомянула упоминал упоминала знаешь знает знаем сообщение сообщения об обо про
sv: sa sade säger säga sagt berättade berättar berättat berätta nämnde nämner nämnt pratade pratar pratat talade talat
vet visste meddelande meddelanden
tr: dedi söyledi söylüyor söylemiş anlattı anlat anlatıyor bahsetti bahset konuştu biliyor biliyorsun biliyoruz mesaj
mesajlar mesajları hakkında
"""
#: What an assistant did, in the past, by language: "can you recommend" is a new request.
_DID = """
da: anbefalede anbefalet foreslog foreslået rådede svarede svaret sagde sagt fortalte nævnte
de: empfohlen empfahlst vorgeschlagen schlugst geraten rietst geantwortet erklärt gesagt sagtest erzählt erwähnt
en: said told mentioned recommended suggested advised proposed answered replied explained gave wrote listed
es: recomendaste recomendado recomendó sugeriste sugerido sugirió aconsejaste aconsejado respondiste dijiste dijo
mencionaste contaste
fi: suosittelit suositellut ehdotit ehdottanut neuvoit vastasit sanoit kerroit mainitsit
fr: recommandé conseillé suggéré proposé répondu expliqué dit mentionné raconté
hu: ajánlottál javasoltál tanácsoltál válaszoltál mondtál említettél
it: consigliato raccomandato suggerito proposto risposto spiegato detto menzionato raccontato
nl: aanbevolen aangeraden voorgesteld geadviseerd geantwoord gezegd verteld genoemd zei
no: anbefalte anbefalt foreslo foreslått rådet svarte svart sa sagt fortalte nevnte
pt: recomendou recomendaste recomendado sugeriu sugeriste sugerido aconselhou respondeu disse disseste
ro: recomandat sugerat propus sfătuit răspuns spus menționat
ru: посоветовал посоветовала посоветовали порекомендовал рекомендовал рекомендовала предложил предложила ответил
ответила сказал сказала упомянул упомянула
sv: rekommenderade rekommenderat föreslog föreslagit rådde svarade svarat sa sade sagt berättade nämnde
tr: önerdin tavsiye ettin cevapladın dedin söyledin
"""
#: Words that address the assistant, by language, and verbs that do so by their form.
_YOU = """
da: du
de: du ihr sie
en: you
es: tú usted has recomendaste sugeriste aconsejaste respondiste dijiste mencionaste contaste
fi: sinä suosittelit ehdotit neuvoit vastasit sanoit kerroit mainitsit
fr: tu as vous avez
hu: te ajánlottál javasoltál tanácsoltál válaszoltál mondtál említettél
it: tu hai
nl: je jij u
no: du
pt: você tu recomendaste sugeriste disseste
ro: tu ai
ru: ты вы
sv: du
tr: sen önerdin ettin dedin söyledin
"""
#: English also asks with an auxiliary, or for a thing of the assistant's.
_DID_YOU = regex(
    r"\bdid you (?:\w+ )?(?:say|tell|mention|recommend|suggest|advise|propose|answer|reply|explain|give|write|list)\b"
    r"|\bwas your (?:advice|answer|suggestion|recommendation|proposal|explanation)\b"
)
#: An English question about what its author said: a name in it is no speaker.
_DID_I = regex(
    r"\b(?:did|have|had) (?:i|we) (?:\w+ )?(?:say|said|tell|told|mention|mentioned|write|wrote|written)\b"
    r"|\b(?:i|we) (?:\w+ )?(?:said|told|mentioned|wrote)\b"
)
#: What remains of a question in a script without spaces if it asks only for what was said.
_UNSPACED_FRAME = regex(
    "[说說讲講告诉訴提到过過谈談聊知道关于關於消息什么麼哪些了的有对對我你您跟吗嗎呢都是推荐薦建议議回答"
    "言話伝教何っしえなにんはがをとてのいたますかこつくださるメッセージ]+"
)
#: Chinese questions about what the assistant said, and words of saying and knowing.
_TO_ASSISTANT_UNSPACED = regex(r"[你您][^我]{0,4}(?:推荐|推薦|建议|建議|说|說|告诉|告訴|回答|提到|提过|提過)")
_SAYS_UNSPACED = regex(r"说|說|讲|講|告诉|告訴|提到|提过|提過|谈|談|聊|知道|消息|言|話|伝|知っ|教え|メッセージ")


def asks_what_i_said(words: Sequence[str]) -> bool:
    """Return whether an English question, in folded words, asks what its author said.

    >>> asks_what_i_said("what did i say about ana".split()), asks_what_i_said("what did ana say".split())
    (True, False)
    """
    return _DID_I.search(" ".join(words)) is not None


def frame_words(language: str) -> frozenset[str]:
    """Return the words of the frames of a language."""
    return _words_of(language)[0]


class Frame(NamedTuple):
    """The frame of a question: what it asks besides its subject.

    Attributes:
        words: Its words that are part of the frame in the first language.
        only: Nothing else is left of the question, but names.
        says: It asks what was said or is known, or consists of names.
        assistant: It asks what the assistant said.
    """

    words: frozenset[str] = frozenset()
    only: bool = False
    says: bool = False
    assistant: bool = False


def frame_of(words: Sequence[str], unspaced: str, names: Set[str], languages: Sequence[str]) -> Frame:
    """Return the frame of a question.

    Args:
        words: Its folded words with spaces, without what follows an apostrophe.
        unspaced: Its parts in scripts without spaces, without names.
        names: The words that are names of speakers.
        languages: The languages that it may be in, the most probable first.

    >>> frame_of("what did ana say".split(), "", {"ana"}, ["en"])
    Frame(words=frozenset({'say'}), only=True, says=True, assistant=False)
    >>> frame_of("what did you suggest for tea".split(), "", {"ana"}, ["en"])
    Frame(words=frozenset(), only=False, says=True, assistant=True)
    """
    first = _frame_in(languages[0], words, unspaced, names)
    if first.only and first.says:
        return first
    shared = _languages_of()  # most questions have a word that is part of a frame in no language
    possible = frozenset(languages[1:]).intersection(*(shared.get(word, ()) for word in words if word not in names))
    others = (_frame_in(each, words, unspaced, names) for each in languages[1:] if each in possible)
    best = next((frame for frame in others if frame.only and frame.says), first)
    return best._replace(words=first.words)


def _frame_in(language: str, words: Sequence[str], unspaced: str, names: Set[str]) -> Frame:
    frames, did, you, plain, addressing = _words_of(language)
    present = frames.intersection(words)
    asked = _DID_YOU.search(" ".join(words)) if language == ENGLISH else None
    assistant = (
        asked is not None
        or not (you.isdisjoint(words) or did.isdisjoint(words))
        or _TO_ASSISTANT_UNSPACED.search(unspaced) is not None
    )
    frame = addressing if assistant else plain
    if asked is not None:
        frame = frame.union(asked[0].split())
    only = all(word in frame or word in names for word in words) and not (
        unspaced and _UNSPACED_FRAME.fullmatch(unspaced) is None
    )
    says = (
        bool(present)
        or assistant
        or _SAYS_UNSPACED.search(unspaced) is not None
        or all(word in names for word in words)
    )
    return Frame(present, only, says, assistant)


@cache
def _words_of(language: str) -> tuple[frozenset[str], ...]:
    """Return the words of a language: of frames, of what an assistant did, and that address it.

    Then all words that are part of a frame, and those that are if it addresses the assistant.
    """
    frames, did, you = (_by_language(each)[language] for each in (_FRAMES, _DID, _YOU))
    plain = frames | stop_words(language)
    return frames, did, you, plain, plain | did | you


@cache
def _languages_of() -> dict[str, frozenset[str]]:
    """Map each word that may be part of a frame to its languages."""
    out: dict[str, set[str]] = {}
    for language in _by_language(_FRAMES):
        for word in _words_of(language)[-1]:
            out.setdefault(word, set()).add(language)
    return {word: frozenset(languages) for word, languages in out.items()}


@cache
def _by_language(listed: str) -> dict[str, frozenset[str]]:
    """Parse a list of words by language. A word that ends with a colon begins the words of a language."""
    out: dict[str, set[str]] = {}
    for word in listed.split():
        if word.endswith(":"):
            words = out[word[:-1]] = set()
        else:
            words.add(folded(word))
    return {language: frozenset(words) for language, words in out.items()}
