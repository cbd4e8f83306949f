"""Change: whether a question asks for what is true now, or for what was true before.

"Where do I live these days?" asks for the newest of several records that say where, "where did I live before?" for an
older one. The words are those of the languages in which dates are read. A question can have them and mean something
else ("is it now or never?"), so they decide only between records that say the same kind of thing
(`indexes.scoring.rivals`).
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache

from recollect.common.regexes import regex


class Holds(Enum):
    """The side of a change that a question asks for."""

    NOW = "now"
    BEFORE = "before"


#: Words for what holds now.
_NOW = """
en: right now; now; currently; current; these days; nowadays; at the moment; at present; presently; today
    still; latest; newest; most recent; anymore; any more; yet; as of now; up to date; the last time; most recently
de: jetzt; derzeit; zurzeit; zur zeit; momentan; im moment; gerade; aktuell(?:e[nrsm]?)?; heutzutage
    inzwischen; mittlerweile; immer noch; noch immer; noch; neuest(?:e[nrsm]?)?; gegenwärtig(?:e[nrsm]?)?
    das letzte mal; zuletzt
es: ahora; actualmente; actual; hoy en día; en este momento; últimamente; todavía; aún; última; último
    más reciente; la última vez
fr: maintenant; actuellement; actuel(?:le)?s?; en ce moment; désormais; de nos jours; ces jours-ci; encore
    toujours; à présent; le plus récent; la plus récente; la dernière fois
it: adesso; ora; attualmente; attuale; in questo momento; al momento; oggigiorno; ultimamente; ancora
    più recente; l'ultima volta
nl: nu; momenteel; tegenwoordig; huidige; op dit moment; nog steeds; nog; nieuwste; inmiddels; de laatste keer
pt: agora; atualmente; atual; neste momento; hoje em dia; ultimamente; ainda; mais recente; a última vez
"""
_NOW_UNSPACED = "现在 現在 目前 如今 当前 當前 最新 还是 還是 仍然 今は 今の まだ 最後に"
#: Words for what was true before, or for the first time.
_BEFORE = r"""
en: used to; did [^?]{1,60} use to; previously; previous; former; formerly; earlier; originally; original; initially
    at first; first; earliest; in the past; back then; (?:my|our|his|her|their|the) old
    before(?! (?:\d|noon|midnight|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b)
de: früher\w*; vorher; zuvor; vorherig\w*; ehemalig\w*; ursprünglich\w*; zuerst; anfangs; damals; erstmals
    frühest\w*; das erste mal
es: antes; anterior; anteriormente; previamente; solía\w*; originalmente; al principio; antigu[oa]; por primera vez
    primer[oa]?
fr: avant; auparavant; autrefois; précédent\w*; ancien(?:ne)?; initialement; à l'origine; d'abord
    pour la première fois
it: prima; precedente; in precedenza; originariamente; inizialmente; all'inizio; vecchi[oa]; per la prima volta
nl: vroeger; eerder; voorheen; vorige; oorspronkelijk\w*; voor het eerst
pt: antes; anterior; anteriormente; antig[oa]; costumava\w*; originalmente; no início; pela primeira vez
"""
_BEFORE_UNSPACED = "以前 之前 过去 過去 原来 原來 曾经 曾經 最初 第一次 かつて 昔 初めて"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the expressions of what holds now, and of what was true before, for text in lower case.

    To ignore case takes them five times as long.
    """
    return _compiled(_NOW, _NOW_UNSPACED), _compiled(_BEFORE, _BEFORE_UNSPACED)


def _listed(words: str) -> list[str]:
    """Return what is listed: separated by semicolons and line breaks, after the language."""
    without_language = re.sub(r"(?m)^[a-z]{2}: ", "", words)
    return [each.strip() for each in re.split(r";|\n", without_language) if each.strip()]


def _compiled(spaced: str, unspaced: str) -> re.Pattern[str]:
    longest_first = "|".join(sorted(_listed(spaced), key=len, reverse=True))
    return re.compile(rf"(?<![\w'-])(?:{longest_first})(?![\w-])|{'|'.join(unspaced.split())}")


#: What comes after "before".
_AFTER_BEFORE = regex(
    r"\b(?:before|bevor|avant(?: que?)?|antes (?:de|que|do|da)l?|prima (?:di|che|del\w*)|voor) (.{1,80})", re.IGNORECASE
)
_EVER = regex(r"\b(?:ever|never)\b", re.IGNORECASE)


def asks_what_holds(question: str) -> Holds | None:
    """Return whether a question, with single blanks between its words, asks for what is true now or was true before.

    >>> [asks_what_holds(each) for each in ("Where do I live now?", "Where did I live before?", "Where is the key?")]
    [<Holds.NOW: 'now'>, <Holds.BEFORE: 'before'>, None]
    """
    now, before = _patterns()
    lower = question.lower()
    if before.search(lower) is not None and _EVER.search(question) is None:
        return Holds.BEFORE
    return Holds.NOW if now.search(lower) is not None else None


def words_beside(question: str) -> str:
    """Return the words of a question that a record need not have to say the same kind of thing as another one.

    They are the phrases for what holds now, and what comes after "before".

    >>> words_beside("Where do I live these days?"), words_beside("Who was in charge before Mei?")
    ('these days', 'Mei?')
    """
    now, _ = _patterns()
    return " ".join([*(found[0] for found in now.finditer(question.lower())), *_AFTER_BEFORE.findall(question)])
