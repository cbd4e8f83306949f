"""Title terms: the words of the titles above a document, stored as terms of their own.

The term of a title's word is the word's term with a prefix that no word has, so its postings are apart from those of
the texts: titles count neither in lengths nor in positions, and a memory without titles has the postings that it would
have without this module. Each title term occurs once in a document, however often the titles repeat the word.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.indexes.documents.columns import Document
from recollect.indexes.words.surface_forms import FORM, comparable, form
from recollect.text.signs import SIGN
from recollect.text.words import is_unspaced

#: Prefix of title terms. Without a word, it is the term of all documents that have a title.
ANY_TITLE = "^"
#: What terms that are not words begin with: surface forms, title terms, those of tokens with signs, and filter terms.
_NO_WORDS = (FORM, ANY_TITLE, SIGN, "\0")


def title_term(term: str) -> str:
    """Return the term of the documents that have a word in a title."""
    return ANY_TITLE + term


def is_word(term: str) -> bool:
    """Return whether a term is a word of a text: none of `other_terms`, no surface form, and no n-gram."""
    return not term.startswith(_NO_WORDS) and not is_unspaced(term)


def other_terms(document: Document) -> Iterator[str]:
    """Yield the terms of a document that are not words of its text, each once.

    They are its filter terms, those of tokens with signs, its title terms, and the surface forms that only its titles
    have.
    """
    yield from document.filter_terms
    yield from document.signs
    if document.titles:
        yield ANY_TITLE
        yield from {title_term(term): None for term, _ in document.titles}
        own = set(document.terms)
        yield from {
            form(word, term): None for term, word in document.titles if comparable(word) and (term, word) not in own
        }
