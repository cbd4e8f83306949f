"""Names in German, where every noun has a capital letter: which words with one are names, and which are nouns.

A noun is a word that is frequent in general language, ends with one (a compound), or stands where only nouns stand. A
word that is neither is a name if something says so: a title, a preposition without an article, or another name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from recollect.text.background import RARE, background_of
from recollect.text.folding import folded
from recollect.text.languages import stop_words
from recollect.text.words import language_of, stem

#: What stands before a noun: articles, possessives and what is like them, without their endings.
_ARTICLES = tuple(
    "d ein kein mein dein sein ihr unser euer eur dies jed welch manch all viel wenig beid mehrer".split()
)
_ENDINGS = ("", "e", "en", "em", "er", "es", "ie", "as", "er", "en", "em", "es")
#: What stands before a name without an article, and what contains one.
_PREPOSITIONS = frozenset("nach aus bei von in mit für auf bis gegen ohne über durch um an zu vor seit".split())
_CONTRACTED = frozenset("im am zum zur beim vom ins ans".split())
#: What stands before the name of a person, in lower case.
_TITLES = frozenset(
    "herr herrn frau dr prof onkel tante oma opa bruder schwester freund freundin kollege kollegin chef chefin cousin "
    "cousine sohn tochter nachbar nachbarin mama papa heilige heiliger baby hund kater katze".split()
)
#: Words with a capital letter at the beginning of a sentence that are no nouns and no names.
_OTHERS = frozenset(
    "mein meine unser unsere dein deine sein seine ihr ihre das der die den dem im am zum zur beim vom ins "
    "gestern heute morgen dann danach jetzt hier dort wenn weil aber und oder also auch nur schon noch ja nein "
    "oida hallo hi danke bitte beide alle viele manche kann könnte hat habe hab ist sind war lies magst willst "
    "weißt gibt gab auf bei mit nach von vor für aus seit wegen trotz kannst schreib stell sag ".split()
)
#: Titles that are no part of a name of a person: "mein Chef Thomas".
_ROLES = frozenset(
    "herr herrn frau bruder schwester freund freundin kollege kollegin chef chefin cousin cousine sohn tochter nachbar "
    "nachbarin mann mama papa".split()
)
#: Languages with stop words that look like German ones, beside English.
_COMPARED = ("fr", "es", "it", "nl")
_LEAST_TAIL = 5


def is_german(text: str, words: Sequence[str]) -> bool:
    """Return whether a text is in German: it is recognised, or has more German stop words than those of another one.

    >>> is_german("Ich habe die Küche geputzt.", "ich habe die küche geputzt".split())
    True
    >>> is_german("I cleaned the kitchen.", "i cleaned the kitchen".split())
    False

    Args:
        words: Its words in lower case.
    """
    distinct = frozenset(words)
    own, english = (len(distinct & stop_words(each)) for each in ("de", "en"))
    if own <= english // 2:
        return False
    if own > english and all(own > len(distinct & stop_words(each)) for each in _COMPARED):
        return True
    return language_of(text) == "de"


def roles_before_a_name(words: Sequence[str]) -> int:
    """Return how many words before a name say who somebody is: "Chef Thomas".

    >>> roles_before_a_name(["Chef", "Thomas"]), roles_before_a_name(["Chef"])
    (1, 0)
    """
    return int(len(words) > 1 and words[0].lower() in _ROLES)


def is_article(word: str) -> bool:
    """Return whether a word, in lower case, is an article or stands in the place of one."""
    return any(word.startswith(each) and word[len(each) :] in _ENDINGS for each in _ARTICLES) or word in _CONTRACTED


@lru_cache(maxsize=4096)
def is_noun(word: str) -> bool:
    """Return whether a word is frequent in general language, or ends with such a word.

    >>> is_noun("Küche"), is_noun("Esszimmer"), is_noun("Miele")
    (True, True, False)
    """
    plain = folded(word)
    if _is_frequent(plain):
        return True
    return any(_is_frequent(plain[at:]) for at in range(3, len(plain) - _LEAST_TAIL + 1))


def _is_frequent(word: str) -> bool:
    background = background_of("de")
    return background is not None and background.expected(stem(word, "de")) is not RARE


def without_words_of_the_sentence(words: Sequence[str]) -> int:
    """Return how many words at the beginning of a run are no part of a name."""
    count = 0
    while count < len(words) and (words[count].lower() in _OTHERS or words[count].lower() in stop_words("de")):
        count += 1
    return count


def is_name(words: Sequence[str], before: str, *, known: Sequence[bool]) -> bool:
    """Return whether a run of words with capital letters is a name.

    Args:
        words: The words.
        before: The word before it in the sentence, in lower case; "" for none.
        known: Of each word, whether it is a known name of a person or a place, or the adjective of one.
    """
    if any(known):
        return True
    if before in _TITLES or (len(words) > 1 and words[0].lower() in _TITLES):
        return True
    if words[0].lower() in _TITLES:
        return False
    if any((word.isupper() and len(word) > 1) or not word[1:].islower() for word in words if len(word) > 1):
        return True  # ORF, ChatGPT
    if all(map(is_noun, words)) or (is_article(before) and before not in _CONTRACTED):
        return False
    return before in _PREPOSITIONS or before in _CONTRACTED or len(words) > 1
