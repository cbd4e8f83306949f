"""The client of a server: `recollect.connect` gives the same `Memory`, whose operations a server executes."""

from recollect.wire.client.executor import connect

__all__ = ["connect"]
