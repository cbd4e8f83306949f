"""Languages: their function words and stemmers, and detection of the language of a text.

A language is detected by its function words: every sentence contains some, and no two languages use them in the same
proportion. This is cheap and deterministic, and gives no result for a text that is too short. The default is English.
Scripts without spaces are not covered: there n-grams replace words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import Stemmer

from recollect.errors import InvalidArgumentError
from recollect.text.english import STOP_WORDS
from recollect.text.folding import folded, same_letters

ENGLISH, TURKISH = "en", "tr"
#: Detection reads this many words of a text, and needs this many different function words of the language; together
#: their occurrences must be this many times those of English ones. Two are enough if they are half of a short text, no
#: word is English, and no other language has both: names such as "de la Cruz" are of no language.
_WORDS_READ, _LEAST_WORDS, _MARGIN = 400, 3, 2

#: Language -> the name of its Snowball stemmer, and its most frequent function words.
_LANGUAGES = {
    "da": ("danish", "og i at det er en den til på de med han af for ikke der var mig som jeg et har men vi dig hvad "
                     "hvor hvornår hvem min din sig fra kan skal vil blev være også når om du eller så ind "
                     "os havde nogle"),
    "de": ("german", "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an "
                     "werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war "
                     "haben nur oder aber vor zur bis mehr durch man ich du wir ihr mich mir dich dir mein meine dein "
                     "wann wo wer was welche welcher welches kann habe hast unser uns"),
    "es": ("spanish", "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya o "
                      "este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos "
                      "mi tu yo él ella qué cómo cuándo dónde quién cuál fue ser está son"),
    "fi": ("finnish", "ja on ei se että oli hän ovat mutta kun niin tai jos myös mitä kuin minä sinä me te he tämä ne "
                      "joka jotka olen olet milloin missä kuka mikä minun sinun hänen ole ollut nyt vain kanssa"),
    "fr": ("french", "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se le ce il sont "
                     "avec ou je tu nous vous elle ils son sa ses mais comme on lui aux cette mon ma mes ton ta tes "
                     "quand où quoi quel quelle était été être ont fait d l j c n s qu m t y leur"),
    "hu": ("hungarian", "a az és hogy nem is egy ez van meg de mint csak már ki mi volt én te ő mikor hol milyen "
                        "melyik vagy ha sem még lesz aki ami azt ezt nagyon mert el be"),
    "it": ("italian", "di e il la che in un a per è una sono mi si ho lo ha le con non ti no da se come al ma i del "
                      "gli alla più o nel della dei delle io tu lui lei noi voi quando dove chi cosa quale mio mia "
                      "tuo tua era stato essere anche questo questa"),
    "nl": ("dutch", "de en van ik te dat die in een hij het niet zijn is was op aan met als voor had er maar om hem "
                    "dan zou of wat mijn men dit zo door over ze zich bij ook tot je mij uit der daar haar naar heb "
                    "hoe heeft hebben deze u want nog zal me zij nu ge geen waar wanneer wie welke we"),
    "no": ("norwegian", "og i jeg det at en et den til er som på de med han av ikke der så var meg seg men ett har om "
                        "vi min mitt ha hadde hun nå over da ved fra du ut sin dem oss opp man kan hans hvor eller hva "
                        "skal selv her alle vil bli ble når hvem"),
    "pt": ("portuguese", "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele "
                         "das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela até isso ela "
                         "onde quem qual meu minha você são"),
    "ro": ("romanian", "de și în a la cu nu este pe un o că mai din pentru care au fost sunt se am ai ce când unde "
                       "cine sau dar prin după fi era al ale lui ei eu tu noi voi mea meu"),
    "ru": ("russian", "и в не на я что он с как это но по а она к у из за от о же вы бы так его для только мы мне если "
                      "когда где кто был была было быть мой моя ты они все еще уже или до при"),
    "sv": ("swedish", "och det att i en jag hon som han på den med var sig för så till är men ett om hade de av icke "
                      "mig du henne då sin nu har inte hans honom skulle hennes där min man ej vid kunde något från ut "
                      "när efter upp vi dem vara vad över än dig kan sina här ha mot alla vem vilken"),
    "tr": ("turkish", "ve bir bu da de için ile çok ben sen o ne mi mı ama gibi daha var yok kadar sonra ya ki her biz "
                      "siz onlar nerede zaman kim hangi benim senin onun olan değil"),
}  # fmt: skip


class _Language(NamedTuple):
    stemmer: str
    stop_words: frozenset[str]


@cache
def _languages() -> dict[str, _Language]:
    out = {
        code: _Language(name, frozenset([*same_letters(words).split(), *folded(words).split()]))
        for code, (name, words) in _LANGUAGES.items()
    }
    out[ENGLISH] = _Language("english", STOP_WORDS)
    return out


# BCP 47 reserves languages of four letters and has registered none of five to eight: they are names, such as "german".
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")

#: The codes of all languages above, in a fixed order.
CODES = (ENGLISH, *_LANGUAGES)


def code_of(name: str) -> str | None:
    """Return the code of a language by its English name; None if it is unknown.

    >>> code_of("German"), code_of("Klingon")
    ('de', None)
    """
    names = {"english": ENGLISH, **{english: code for code, (english, _) in _LANGUAGES.items()}}
    return names.get(name.casefold())


def check_tag(language: object) -> None:
    """Raise InvalidArgumentError unless it has the form of a BCP 47 tag."""
    if not isinstance(language, str) or not _TAG.fullmatch(language):
        code = code_of(language) if isinstance(language, str) else None
        hint = f" (did you mean {code!r}?)" if code else ""
        raise InvalidArgumentError("language", language, f'must be a BCP 47 tag, such as "en" or "de-AT"{hint}')


def known(tag: str | None) -> str | None:
    """Return the language code for a BCP 47 tag, or None if there is no stemmer for it.

    >>> known("de-AT"), known("nb"), known("xx")
    ('de', 'no', None)
    """
    primary = (tag or "").partition("-")[0].lower()
    primary = "no" if primary in ("nb", "nn") else primary
    return primary if primary in CODES else None


def stop_words(language: str) -> frozenset[str]:
    """Return the function words of a language, with and without accents. They are neither indexed nor searched for."""
    return _languages()[language].stop_words


@cache
def stemmer(language: str) -> Stemmer.Stemmer:
    """Return the Snowball stemmer of a language."""
    snowball = Stemmer.Stemmer(_languages()[language].stemmer)
    snowball.maxCacheSize = 0  # `words.stem` has its own thread-safe cache
    return snowball


def detected(words: Sequence[str]) -> str | None:
    """Return the language of a sequence of words (`words.marked_runs`), or None if they are not conclusive.

    >>> detected("wo ist der schlussel und wer hat ihn".split()), detected("tea please".split())
    ('de', None)
    >>> detected("wir heizen mit gas".split()), detected("ana de la cruz".split())
    ('de', None)
    """
    first = words[:_WORDS_READ]
    english = sum(map(STOP_WORDS.__contains__, first))
    if 4 * english < len(first):  # English text has more
        languages_of = _languages_of()
        counts = Counter([code for word in first if word in languages_of for code in languages_of[word]])
        if counts:
            best = max(counts, key=lambda code: (counts[code], code))
            different = len(stop_words(best).intersection(first))
            if different == _LEAST_WORDS - 1 and not english and 2 * counts[best] >= len(first):
                different += list(counts.values()).count(counts[best]) == 1
            if different >= _LEAST_WORDS and counts[best] >= _MARGIN * english and 6 * counts[best] >= len(first):
                return best
    return ENGLISH if english >= _LEAST_WORDS else None


@cache
def _languages_of() -> dict[str, tuple[str, ...]]:
    """Map each function word to the languages other than English that have it."""
    out: dict[str, tuple[str, ...]] = {}
    for code, language in _languages().items():
        for word in language.stop_words if code != ENGLISH else ():
            out[word] = (*out.get(word, ()), code)
    return out
