"""Languages: their function words and stemmers, and detection of the language of a text.

A language is detected by its function words: every sentence contains some, and no two languages use them in the same
proportion. This is cheap and deterministic, and gives no result for a text that is too short, or whose words are those
of several languages; those without a stemmer are known as well, so that they are not taken for another one. The default
is English. Scripts without spaces are not covered: there n-grams replace words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import Stemmer

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError
from recollect.text.english import STOP_WORDS
from recollect.text.folding import folded, same_letters

ENGLISH, TURKISH = "en", "tr"
#: The number of words of a text that detection reads; the fewest different function words of a language that state it;
#: and the most words of a text for each of them.
_WORDS_READ, _LEAST_WORDS, _SHARE = 400, 2, 6
#: The weight of a word that only one language has.
_WEIGHT = 2520
#: More than `_WORDS_READ` words can be counted in this many bits.
_COUNT_BITS = 12
_COUNT = (1 << _COUNT_BITS) - 1
#: Languages that share most of their function words, and further words that tell them apart.
_SIMILAR = {"da": "no", "no": "da"}
_APART = {
    "da": "af mig dig sig nej efter ud op kun mere hende blive bliver uden mellem lige kunne skulle ville være været "
          "gør gøre ved hvis bruge hvert noget stadig altid",
    "no": "av meg deg seg nei etter ut opp bare mer henne bli blir uten mellom lik kunne skulle ville være vært gjør "
          "gjøre ved hvis bruke hvert noe fortsatt alltid hva",
}  # fmt: skip
#: In a text of more words than this, a quarter of English ones is English.
_LONG = 40

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


#: Frequent function words of languages without a stemmer, so that none of them is taken for one that has one.
_OTHERS = {
    "af": (
        "die en van is nie n het te in vir met op wat dit word as om sy hy aan kan sal moet ek jy u ons hulle "
        "deur na tot by daar geen ook maar of was hierdie nog een jou"
    ),
    "ast": "y de la el en que nun los pa con una un ye'l ye nel del al esta esti son ser foi tien pero tamién",
    "az": "və bu ilə üçün bir olan deyil ki də da o mən sən var yox hər çox ola biz siz nə",
    "be": "і ў у на не што з да та гэта як за для па ад або але пра гэты гэтая які якая можа быць мае трэба вы",
    "bg": (
        "и в на се е да не за с са който това или при като този тази по от до само още но която които може "
        "трябва към ще бъде"
    ),
    "br": "ha an ar e da n'eo ket a zo gant evit er eus pe hag ur un",
    "ca": (
        "i el la de que en els les per amb una un no es del al dels aquest aquesta són és més com ha han "
        "aquests aquestes ser però també ja on quan què qui hi ho molt sense des fins entre vostè seva seu"
    ),
    "cs": (
        "a v na se je že nebo to do z s pro o jsou jako musí být není za k tak při této tento které který už "
        "ale po jen mi co jak může"
    ),
    "cy": "a y yn i o ar yr mae nid ei wedi gyda neu hwn hon fod ond rhaid",
    "eo": "la de kaj en ne estas al por kun ĉi tiu ke el aŭ sed devas povas esti vi mi ili kiel ajn jam nur unu",
    "et": ("ja on ei see et ning või mis kui ole peab saab selle seda oma teie kas veel ka aga siis seal olla mitte"),
    "eu": "eta da ez du dira izan hau hori bat edo ere behar duzu dute zure honen baina egin",
    "ga": "agus an na is ar le i do ní go bhfuil atá sé seo nó as mar ach",
    "gd": "agus an na is air le chan eil do tha e seo no a-mach gu ach",
    "gl": (
        "e o a de que non en os as unha un para por con do da dos das é na no nas nos ao á este esta son ser "
        "como máis xa pero tamén onde cando quen moi sen desde ata entre seu súa foi hai ten pode debe"
    ),
    "hr": (
        "i u na se je da ne za s su koji to ili pri nije biti kao ovaj ova po iz mora može ste od do samo još "
        "ali koja koje"
    ),
    "ia": "le de e in non es a pro con que iste un o al del per si tu vostre debe esser essite ha ma como",
    "id": (
        "yang dan di untuk dengan ini tidak dari pada ke dalam adalah itu atau akan telah dapat oleh harus "
        "anda saya kami tersebut ada sudah lebih kita bisa juga karena belum"
    ),
    "is": ("og í á að er ekki sem til um með fyrir það hann hún við þetta verður eða frá þú ég en var eru af ef þarf"),
    "lt": "ir yra ne iš su kad į už ar kas bet tik turi būti jūs jau prie po kaip tai šis ši arba šio",
    "lv": "un ir nav no ar uz ka par vai kas lai šo šis bet tikai jābūt jūs jau pie pēc kā tiek tas",
    "mk": ("и во на се е да не за со кој тоа или при како овој оваа по од до само уште но која кои може треба ќе биде"),
    "ms": (
        "yang dan di untuk dengan ini tidak daripada pada ke dalam adalah itu atau akan telah boleh oleh "
        "perlu anda saya kami tersebut ada sudah"
    ),
    "pl": (
        "i w na nie się do jest z że to o a jak dla po od przez być za co tak już są musi może ten ta te tego "
        "tej lub czy ma gdy oraz jego tylko zostać"
    ),
    "sk": (
        "a v na sa je že alebo to do z s pre o sú ako musí byť nie za k tak pri tejto tento ktoré ktorý už "
        "ale po len čo môže nesmie"
    ),
    "sl": "in v na se je da ne za z so ki to ali pri ni biti kot tega ta po iz mora lahko ste bo od do le še",
    "sq": "dhe në e të për nuk me është që një i nga ky kjo ose janë duhet mund do po si por",
    "sr": (
        "и у на се је да не за са су који то или при није бити као овај ова по из мора може сте од до само "
        "још али која које"
    ),
    "sw": "na ya wa kwa ni la katika hii hiyo si au kama cha za huyu yako ambayo lakini",
    "tl": "ang ng sa na mga at ay hindi ito may para kung ako ikaw siya namin ninyo nila nasa pero dahil",
    "uk": (
        "і в у на не що з до та це як за для по від є або але про цей ця який яка які може має бути цього ви ми він"
    ),
    "vi": (
        "và của là có không được cho một các những này trong với người để đã từ phải tôi bạn khi nào đó hoặc "
        "như về vào ở sẽ cũng rất trên"
    ),
}


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
_TAG = regex(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")

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

    A function word speaks for each language that has it, the less the more have it. A language is stated only if two
    of its words are there and they say a third more than those of any other language, with a stemmer or without.

    >>> detected("wo ist der schlussel und wer hat ihn".split()), detected("tea please".split())
    ('de', None)
    >>> detected("wir heizen mit gas".split()), detected("ana de la cruz".split())
    ('de', None)
    """
    first = words[:_WORDS_READ]
    if len(first) > _LONG and 4 * sum(map(STOP_WORDS.__contains__, first)) >= len(first):
        return ENGLISH  # texts of other languages have fewer of its words
    sums: defaultdict[str, int] = defaultdict(int)
    for having in filter(None, map(_languages_of().get, first)):
        for code, weight_and_one in having:
            sums[code] += weight_and_one
    if not sums:
        return None
    scores = [(value >> _COUNT_BITS, code) for code, value in sums.items()]
    score, best = max(scores)
    near, count = _SIMILAR.get(best), sums[best] & _COUNT
    others = max([score for score, code in scores if code not in (best, near)], default=0)
    # In a text of which they are half, words that several languages have are enough.
    least = _WEIGHT // (3 if 2 * count >= len(first) else 2)
    clear = score >= least and 3 * score >= 4 * others
    many = _SHARE * count >= len(first) and (best == ENGLISH or count >= 2 * (sums.get(ENGLISH, 0) & _COUNT))
    if not (clear and many) or best in _OTHERS:
        return None
    return best if len(stop_words(best).intersection(first)) >= _LEAST_WORDS else None


@cache
def _languages_of() -> dict[str, tuple[tuple[str, int], ...]]:
    """Map each function word to the languages that have it, with its weight for them and 1 in one number.

    Two sums in one take half the time.
    """
    of: dict[str, list[str]] = {}
    for code in CODES:
        for word in stop_words(code):
            of.setdefault(word, []).append(code)
    for code, words in (*_OTHERS.items(), *_APART.items()):
        for word in {*same_letters(words).split(), *folded(words).split()}:
            if code not in of.setdefault(word, []):
                of[word].append(code)
    one = {word: (_WEIGHT // len(codes) << _COUNT_BITS) + 1 for word, codes in of.items()}
    return {word: tuple((code, one[word]) for code in codes) for word, codes in of.items()}
