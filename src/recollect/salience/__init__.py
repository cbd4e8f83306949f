"""Salience: whether a text is worth remembering, judged by rules without a model."""

from __future__ import annotations

from recollect.salience.rules import LEVELS, WHY, Judgement, Level, judge

__all__ = ["LEVELS", "WHY", "Judgement", "Level", "judge"]
