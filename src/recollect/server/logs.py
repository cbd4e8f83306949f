"""The log of a server: a JSON object a line on stderr, never with contents."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from recollect import __version__ as version

_log = logging.getLogger("recollect.server")
#: What a line has beside the time, the level and the event, where it is known.
_FIELDS = ("worker", "door", "operation", "ms", "error")


class _Lines(logging.Formatter):
    """A log line as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        out: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        out |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        return json.dumps(out, ensure_ascii=False)


def log_to_stderr(level: int) -> None:
    """Log what this package says on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    log = logging.getLogger("recollect")
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False
    _log.info("starting recollect %s", version)


def name_worker(number: int) -> None:
    """Name the worker in each line that this process logs."""

    def named(record: logging.LogRecord) -> bool:
        record.__dict__["worker"] = number
        return True

    for handler in logging.getLogger("recollect").handlers:
        handler.addFilter(named)
