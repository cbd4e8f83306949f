"""The results of a rescue, by namespace."""

from __future__ import annotations

import recollect


def records_by_namespace(report: recollect.RescueReport) -> dict[str, int]:
    return {branch.namespace: saved.records for branch, saved in report.branches.items()}


def roots_are_same(report: recollect.RescueReport) -> dict[str, bool]:
    return {branch.namespace: saved.same_root for branch, saved in report.branches.items()}
