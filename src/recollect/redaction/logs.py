"""A filter for Python's logging that redacts messages before a handler writes them."""

from __future__ import annotations

import logging
from collections.abc import Collection

from recollect.redaction.redactor import CATEGORIES, check_categories, redact


class RedactingFilter(logging.Filter):
    """Redacts the messages of log records. Add it to a handler, so that it sees what all loggers pass to it.

        handler.addFilter(recollect.redaction.RedactingFilter())

    The message is formatted first, so values among its arguments are redacted too, and so is the text of an exception.

    Args:
        categories: What to replace: see `redact`.
    """

    def __init__(self, categories: Collection[str] = CATEGORIES) -> None:
        super().__init__()
        self._categories = check_categories(categories)

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact a record and pass it on."""
        record.msg, record.args = redact(record.getMessage(), self._categories).text, None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            # The traceback is formatted here and not again by the handler, which would use the exception itself.
            record.exc_text, record.exc_info = redact(record.exc_text, self._categories).text, None
        return True
