"""Measures how well a glossary resolves ambiguous abbreviations, on sentences that name one of several expansions.

The sentences are split into folds. For each fold, a glossary has every expansion of the dictionary as a term with its
abbreviations as aliases, described by the sentences of the other folds that mean it, and is asked the sentences of this
one. Peers get the same: BM25 (bm25s as its documentation uses it) the same texts, and the most frequent expansion the
same sentences.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import recollect
from recollect.errors import ImportFormatError, MissingExtraError, StoreIOError

DICTIONARY = "diction.json"
#: Number of folds, and how many of the best expansions are counted.
FOLDS, CUTS = 5, (1, 3)
_AGENT = "reader"

#: A ranking of the expansions of an abbreviation for a sentence, best first.
Ranking = Callable[["Sentence"], Sequence[str]]


class Sentence(NamedTuple):
    """A sentence with an abbreviation.

    Attributes:
        text: The sentence.
        expansion: What it means there.
    """

    text: str
    abbreviation: str
    expansion: str


class Expansions(NamedTuple):
    """A data set.

    Attributes:
        candidates: Abbreviation -> its expansions.
    """

    candidates: Mapping[str, Sequence[str]]
    sentences: Sequence[Sentence]


def read(folder: Path) -> Expansions:
    """Read a data set in the form of the shared task on acronym disambiguation at SDU@AAAI-21.

    Args:
        folder: A folder with diction.json, an object of lists, and one or more other JSON files of sentences.

    Raises:
        StoreIOError: A file cannot be read.
        ImportFormatError: A file has another form.
    """
    candidates = _json(folder / DICTIONARY)
    if not isinstance(candidates, dict):
        raise ImportFormatError(str(folder / DICTIONARY), "", "must be an object of lists of expansions")
    sentences = []
    paths = sorted(path for path in folder.glob("*.json") if path.name != DICTIONARY)
    if not paths:
        raise ImportFormatError(str(folder), "", "has no JSON file of sentences")
    for path in paths:
        for number, each in enumerate(_json(path)):
            try:
                abbreviation = each["tokens"][each["acronym"]]
                sentence = Sentence(" ".join(each["tokens"]), abbreviation, each["expansion"])
                known = sentence.expansion in candidates[abbreviation]
            except (KeyError, IndexError, TypeError):
                known = False
            if not known:
                rule = "must have tokens, the index of the acronym and one of its expansions"
                raise ImportFormatError(str(path), f"item {number}", rule)
            sentences.append(sentence)
    return Expansions(candidates, sentences)


def accuracies(data: Expansions, progress: Callable[[int, int], object] = lambda done, total: None) -> dict[str, Any]:
    """Return the accuracy at each cut, by method.

    Args:
        data: The data set.
        progress: Called with the number of sentences that were asked, and of all.

    Raises:
        MissingExtraError: bm25s is not installed.
    """
    right: dict[str, Counter[int]] = defaultdict(Counter)
    for fold in range(FOLDS):
        known = [each for at, each in enumerate(data.sentences) if at % FOLDS != fold]
        asked = data.sentences[fold::FOLDS]
        texts = _texts(data, known)
        with recollect.open(":memory:", embedder="none") as memory:
            methods: dict[str, Ranking] = {
                "recollect": _glossary(memory, data, texts),
                "bm25s": _bm25s(data, texts),
                "most frequent": _most_frequent(data, known),
            }
            for sentence in asked:
                for name, ranking in methods.items():
                    at = list(ranking(sentence)).index(sentence.expansion)
                    right[name].update(cut for cut in CUTS if at < cut)
        progress(fold + 1, FOLDS)
    count = len(data.sentences)
    return {
        "n": count,
        "expansions": sum(len(data.candidates[each.abbreviation]) for each in data.sentences) / max(count, 1),
        "methods": {
            name: {f"accuracy@{cut}": found[cut] / max(count, 1) for cut in CUTS} for name, found in right.items()
        },
    }


def _texts(data: Expansions, known: Sequence[Sentence]) -> dict[str, str]:
    """Return the sentences that mean each expansion, as one text."""
    texts: dict[str, list[str]] = {each: [] for expansions in data.candidates.values() for each in expansions}
    for sentence in known:
        texts[sentence.expansion].append(sentence.text)
    return {expansion: "\n".join(sentences) for expansion, sentences in texts.items()}


def _glossary(memory: recollect.Memory, data: Expansions, texts: Mapping[str, str]) -> Ranking:
    aliases: dict[str, list[str]] = defaultdict(list)
    for abbreviation, expansions in data.candidates.items():
        for expansion in expansions:
            aliases[expansion].append(abbreviation)
    terms = [
        {"key": expansion, "value": expansion, "aliases": aliases[expansion], "description": text}
        for expansion, text in texts.items()
    ]
    memory.glossary.from_json(json.dumps(terms), _AGENT)

    def ranked(sentence: Sentence) -> list[str]:
        candidates = data.candidates[sentence.abbreviation]
        found = memory.glossary.recall(sentence.text, _AGENT, k=len(terms))
        first = [each["key"] for each in found if each["key"] in candidates]
        return [*first, *(each for each in candidates if each not in first)]

    return ranked


def _bm25s(data: Expansions, texts: Mapping[str, str]) -> Ranking:
    try:
        import bm25s
    except ImportError as error:
        raise MissingExtraError("the comparison with BM25", "bm25s", "eval") from error
    number = {expansion: at for at, expansion in enumerate(texts)}
    index = bm25s.BM25()
    documents = [f"{expansion}\n{text}" for expansion, text in texts.items()]
    index.index(bm25s.tokenize(documents, stopwords="en", show_progress=False), show_progress=False)

    def ranked(sentence: Sentence) -> list[str]:
        (words,) = bm25s.tokenize(sentence.text, stopwords="en", show_progress=False, return_ids=False)
        scores = index.get_scores(words)
        return sorted(data.candidates[sentence.abbreviation], key=lambda each: -scores[number[each]])

    return ranked


def _most_frequent(data: Expansions, known: Sequence[Sentence]) -> Ranking:
    counts = Counter((each.abbreviation, each.expansion) for each in known)

    def ranked(sentence: Sentence) -> list[str]:
        abbreviation = sentence.abbreviation
        return sorted(data.candidates[abbreviation], key=lambda each: -counts[abbreviation, each])

    return ranked


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise StoreIOError(str(path), error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ImportFormatError(str(path), "", f"is not JSON ({error})") from None
