"""The peers that a measurement can query in this process, each set up as its documentation says.

Every peer gets the same texts and questions and returns ten hits. None explains them, and only tantivy and rank_bm25
fetch the text of a hit; what is omitted is in favour of the peer. If the library of a peer is not installed, this is
reported with the command that installs it, and the others run.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import apsw

from recollect.text.words import terms

K = 10
_WORD = re.compile(r"\w+")


class PeerMissingError(Exception):
    """A peer's library is not installed."""

    def __init__(self, library: str) -> None:
        super().__init__(library)

    def __str__(self) -> str:
        return f"{self.args[0]} is not installed: pip install {self.args[0]}"


def library(name: str) -> Any:
    """An optional module. Raises: PeerMissingError."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise PeerMissingError(name.replace("_", "-")) from None


class Peer(Protocol):
    """Something that holds texts and finds ten of them.

    about  its version, and what of its set-up depends on what is installed
    """

    about: str

    def ask(self, question: str) -> object:
        """The ten best for a question."""
        ...


class Fts5:
    """SQLite's FTS5: an OR of the question's quoted words in order of bm25(), the index optimized after loading. Its
    defaults else (tokenizer unicode61). `ORDER BY rank`, which says the same, took half as long again when tried."""

    def __init__(self, texts: Sequence[str], folder: Path) -> None:
        self.about = f"SQLite {apsw.sqlite_lib_version()}"
        self._database = apsw.Connection(str(folder / f"{type(self).__name__}.db"))
        self._database.execute("CREATE VIRTUAL TABLE t USING fts5(text)")
        with self._database:
            self._database.executemany("INSERT INTO t VALUES (?)", ((text,) for text in texts))
        self._database.execute("INSERT INTO t (t) VALUES ('optimize')")

    def words(self, question: str) -> list[str]:
        return _WORD.findall(question)

    def ask(self, question: str) -> object:
        wanted = " OR ".join(f'"{word}"' for word in self.words(question))
        query = f"SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT {K}"
        return self._database.execute(query, (wanted,)).fetchall()


class Fts5Content(Fts5):
    """The same without the question's stop-words (by our list), which is faster: FTS5 has no list of its own."""

    def words(self, question: str) -> list[str]:
        return [word for _, word in terms(question)]


class Bm25s:
    """bm25s: English stop-words and PyStemmer, as its first example has it; its numba backend where numba is there."""

    def __init__(self, texts: Sequence[str], folder: Path) -> None:
        self._bm25s = library("bm25s")
        import Stemmer

        self._stemmer = Stemmer.Stemmer("english")
        backend = "numba" if importlib.util.find_spec("numba") else "numpy"
        self.about = f"bm25s {version('bm25s')}, backend {backend}"
        self._index = self._bm25s.BM25(backend=backend)
        self._index.index(self._tokens(list(texts)), show_progress=False)
        self._k = min(K, len(texts))

    def _tokens(self, texts: list[str]) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)

    def ask(self, question: str) -> object:
        tokens = self._tokens([question])
        if not tokens.ids[0]:  # nothing but stop-words: it refuses to be asked
            return []
        return self._index.retrieve(tokens, k=self._k, show_progress=False)


class Tantivy:
    """tantivy: one stored text field with the English stemmer in an index on disk, the question's words parsed by
    `parse_query`, and the ten documents fetched, as its tutorial does."""

    def __init__(self, texts: Sequence[str], folder: Path) -> None:
        tantivy = library("tantivy")
        self.about = f"tantivy {version('tantivy')}"
        schema = tantivy.SchemaBuilder().add_text_field("body", stored=True, tokenizer_name="en_stem").build()
        place = folder / "tantivy"
        place.mkdir()
        self._index = tantivy.Index(schema, path=str(place))
        writer = self._index.writer(num_threads=1)
        for text in texts:
            writer.add_document(tantivy.Document(body=text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def ask(self, question: str) -> object:
        # In lower case, so that no word of the question is taken for an operator.
        query = self._index.parse_query(" ".join(_WORD.findall(question)).lower(), ["body"])
        return [self._searcher.doc(address)["body"] for _, address in self._searcher.search(query, K).hits]


class RankBm25:
    """rank_bm25: BM25Okapi over words split at spaces, in lower case, and `get_top_n`, as its README has it."""

    def __init__(self, texts: Sequence[str], folder: Path) -> None:
        rank_bm25 = library("rank_bm25")
        self.about = f"rank-bm25 {version('rank-bm25')}"
        self._texts = list(texts)
        self._index = rank_bm25.BM25Okapi([text.lower().split() for text in texts])

    def ask(self, question: str) -> object:
        return self._index.get_top_n(question.lower().split(), self._texts, n=K)


#: Peers by the names that `--peers` takes.
PEERS: dict[str, Callable[[Sequence[str], Path], Peer]] = {
    "fts5": Fts5,
    "fts5_content": Fts5Content,
    "bm25s": Bm25s,
    "tantivy": Tantivy,
    "rank_bm25": RankBm25,
}
