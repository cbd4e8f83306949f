"""A pytest plugin that puts our stores in the place of LangGraph's stores in SQLite, for the tests of their owner.

The tests make an empty file first, where ours refuses to make a store: it is removed, as they have no other use for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import langgraph.store.sqlite

from recollect.compat.langgraph import AsyncRecollectStore, RecollectStore


def _without_empty_file(path: str) -> str:
    if path != ":memory:" and Path(path).exists() and not Path(path).stat().st_size:
        Path(path).unlink()
    return path


def _replacing_empty_files(kind: Any) -> Any:
    opened = kind.from_conn_string.__func__

    def from_conn_string(cls: Any, /, conn_string: str, **options: Any) -> Any:
        return opened(cls, _without_empty_file(conn_string), **options)

    return type(kind.__name__, (kind,), {"from_conn_string": classmethod(from_conn_string)})


langgraph.store.sqlite.SqliteStore = _replacing_empty_files(RecollectStore)
langgraph.store.sqlite.AsyncSqliteStore = _replacing_empty_files(AsyncRecollectStore)
