"""A case: one behaviour of a store, and why a store should have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recollect.testing.langgraph_store.calls import Stores

#: Why a store should behave so. "documented": the docstrings of `BaseStore` and its operations say so, or it follows
#: from the names of their fields. "reference": the stores that LangGraph publishes agree on it. "recommended": what
#: users expect, where neither says it; a store that differs should say so.
Basis: TypeAlias = Literal["documented", "reference", "recommended"]
#: What a factory must take for a case.
Need: TypeAlias = Literal["path", "index", "ttl"]


@dataclass(frozen=True, slots=True)
class Case:
    """One behaviour.

    Attributes:
        name: Its name: a sentence with underscores.
        basis: Why a store should have it.
        run: Checks it on stores of a factory; raises an AssertionError where they differ.
        needs: What the factory must take.
        group: The topic, for tables.
    """

    name: str
    basis: Basis
    run: Callable[[Stores], None]
    needs: tuple[Need, ...]
    group: str

    @property
    def sentence(self) -> str:
        """The name as a sentence."""
        return self.name.replace("_", " ")


class CaseGroup:
    """The cases of one topic, in the order in which they are written.

    Args:
        name: The topic.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.cases: list[Case] = []

    def case(self, basis: Basis, *needs: Need) -> Callable[[Callable[[Stores], None]], Callable[[Stores], None]]:
        """Add a function as a case."""

        def add(run: Callable[[Stores], None]) -> Callable[[Stores], None]:
            self.cases.append(Case(run.__name__, basis, run, needs, self.name))
            return run

        return add
