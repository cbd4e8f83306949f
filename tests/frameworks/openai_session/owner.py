"""A pytest plugin that puts our session in the place of the SDK's session in SQLite, for the tests of its owner."""

from __future__ import annotations

import agents
from recollect.compat.openai_agents import RecollectSession


class SQLiteSession(RecollectSession):
    """Our session under the name that messages of the tests expect."""


agents.SQLiteSession = SQLiteSession
