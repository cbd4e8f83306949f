"""A pytest plugin that puts our stores in the place of LangGraph's stores in SQLite, for the tests of their owner."""

from __future__ import annotations

import langgraph.store.sqlite

from recollect.compat.langgraph import AsyncRecollectStore, RecollectStore

langgraph.store.sqlite.SqliteStore = RecollectStore
langgraph.store.sqlite.AsyncSqliteStore = AsyncRecollectStore
