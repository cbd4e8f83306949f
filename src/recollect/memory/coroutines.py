"""The bases of the awaited classes, which are empty: `recollect.memory.awaited` derives the calls.

Type checkers and editors read `coroutines.pyi` instead, where scripts/make_stub.py declares these calls.
"""

from __future__ import annotations


class MemoryCoroutines: ...


class BatchCoroutines: ...


class GlossaryCoroutines: ...


class OutlineCoroutines: ...


class KeyedCoroutines: ...


class SdrCoroutines: ...


class QuarantineCoroutines: ...
