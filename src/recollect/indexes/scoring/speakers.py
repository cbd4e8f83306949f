"""Names in questions: which speaker a question names, and what it asks without names.

A name says whose turns are meant, and hardly what is meant: with it, the vector of a question resembles whatever this
speaker says. So does the word that all facts about a person or a thing share.
"""

from __future__ import annotations

import re

from recollect.common.regexes import regex
from recollect.indexes.documents.columns import NONE
from recollect.indexes.parameters import COMMON, COMMON_PART
from recollect.indexes.words.index import WordView
from recollect.indexes.words.surface_forms import comparable
from recollect.text.folding import folded
from recollect.text.frames import asks_what_i_said
from recollect.text.languages import CODES, ENGLISH
from recollect.text.words import MAX_WORD, is_unspaced, language_of, runs, stem

#: What may be between two sentences, besides the ends of sentences.
_OPENING, _ENDS = " \t\"'“”„«»(*¿¡", ".?!:;…。？！\n"
#: The language in which all nouns begin with a capital.
_GERMAN = "de"
_FIRST_PERSON = frozenset("i i'm i've i'd i'll my me mine we we're we've our us".split())
_WORD = regex(r"[^\W_]+(?:'[^\W_]+)?")
#: A word, with an ending of possession.
_WITH_ENDING = regex(r"[^\W_]+(?:['’][sS]\b)?")


def named_speaker(text: str, view: WordView) -> tuple[int, set[str]]:
    """Return the speaker that a question names first, and the misspelt names in the question.

    A speaker is named by a name, by its first three letters, by an unknown word that is almost a name, or by "I" if
    there are documents with the role "user". What "I said about Ana" is not what Ana said.
    """
    table = view.table
    misspelt: set[str] = set()
    if table.has_speakers and not asks_what_i_said([run.partition("'")[0] for run, _ in runs(text)]):
        for raw in _WORD.findall(text):
            plain = raw.partition("'")[0][:MAX_WORD]  # names are cut to this length, too
            word = folded(plain)
            found = view.speakers(stem(word))
            if not found and len(plain) == 3 and plain[0].isupper():
                found = {number for number, name in table.speaker_names.items() if name[:3] == word}
            if not found and comparable(word) and table.speaker_names and not view.known(stem(word)):
                found = {number for number in table.speakers.almost(word) if number in table.speaker_names}
                if found:
                    misspelt.add(word)
            if found:
                return (found.pop() if len(found) == 1 else NONE), misspelt
        found = _named_without_spaces(text, view)
        if found:
            return (found.pop() if len(found) == 1 else NONE), misspelt
    user = table.speakers.number.get("\0user", NONE)
    if user != NONE and _FIRST_PERSON & {run for run, _ in runs(text)}:
        return user, misspelt
    return NONE, misspelt


def without_names(text: str, view: WordView) -> str:
    """Return a question without the names of speakers, and other names that a third of the records have.

    If nothing else is left, it is the question itself. A name of another person or thing is a word that begins with a
    capital, and no sentence, where capitals mark names: not in German. (Were all such words removed, the topic of a
    conversation would be, too.)

    Cost:
        O(words of the question), O(occurrences of such names), and O(speakers) if it is written without spaces.
    """
    table = view.table
    languages = [CODES[number] for number in table.written_in] or [ENGLISH]
    marked = _GERMAN not in (*languages, language_of(text))
    many = max(COMMON, -(-table.live_count // COMMON_PART))

    def kept(found: re.Match[str]) -> str:
        raw = re.split("['’]", found[0])[0][:MAX_WORD]
        word = folded(raw)
        if table.has_speakers and view.speakers(stem(word)):
            return ""
        like_a_name = marked and raw[0].isupper() and raw[1:].islower() and not _begins(text[: found.start()])
        return "" if like_a_name and view.in_many({stem(word, each) for each in languages}, many) else found[0]

    out = _WITH_ENDING.sub(kept, text)
    if table.has_speakers and any(without_spaces for _, without_spaces in runs(text)):
        for name in filter(is_unspaced, table.speaker_names.values()):
            out = out.replace(name, "")
    out = " ".join(out.split())
    return out if re.search(r"\w", out) else text


def _begins(before: str) -> bool:
    """Return whether what comes after a text begins a sentence."""
    before = before.rstrip(_OPENING)
    return not before or before[-1] in _ENDS


def _named_without_spaces(text: str, view: WordView) -> set[int]:
    """Return the speakers whose names occur in a question in a script without spaces, or next to such a script."""
    parts = runs(text)
    if not any(without_spaces for _, without_spaces in parts):
        return set()
    written = folded(text)
    found = {number for number, name in view.table.speaker_names.items() if is_unspaced(name) and name in written}
    return found.union(*(view.speakers(stem(run)) for run, without_spaces in parts if not without_spaces))
