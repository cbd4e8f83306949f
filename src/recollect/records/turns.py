"""Marks of turns: those of a branch that was abandoned, and the summary that stands for turns of its conversation."""

from __future__ import annotations

from recollect.records.record import Record

#: The tag of turns that an edited message or another answer has replaced. No text for a model has them.
OTHER_BRANCH = "other-branch"
#: The kind and the role of a summary that was passed in the place of turns. The role is that of a system prompt: it is
#: nobody's word.
SUMMARY, SUMMARY_ROLE = "summary", "system"


def is_summary(record: Record) -> bool:
    """Return whether a record is a summary of turns of its conversation."""
    return record.kind == SUMMARY and record.role == SUMMARY_ROLE and record.conversation is not None
