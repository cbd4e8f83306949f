"""Reads the fields of a scenario one by one, and names a wrong one by its dotted path.

The reader of a mapping asks for each field by name, and then calls `end`, which refuses the fields that were not asked
for: a misspelled field is an error, not a setting that has no effect.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from recollect.arguments.checks import check_flag, is_integer, is_number
from recollect.errors import InvalidArgumentError

_INFINITE = float("inf")
#: Larger numbers are no times or sizes of a simulation.
_LARGEST = 2.0**53


class ScenarioFields:
    """A mapping of names to values at a path of a scenario. A value of None counts as absent.

    Args:
        path: The path, such as "agents.roles[0]"; "" for the scenario itself.
        data: The mapping.

    Raises:
        InvalidArgumentError: The value is not a mapping. All methods raise this, too.
    """

    def __init__(self, path: str, data: object) -> None:
        if not isinstance(data, Mapping):
            raise InvalidArgumentError(path or "the scenario", data, "must be a mapping of names to values")
        for name in data:
            if not isinstance(name, str):
                raise InvalidArgumentError(path or "the scenario", name, "is a name in it, and must be text")
        self.path = path
        self.data: Mapping[str, Any] = data
        self._known: list[str] = []

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def raw(self, name: str) -> Any:
        """Return a value as it is; None if it is absent."""
        self._known.append(name)
        return self.data.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Without a default, the field is required, and not empty."""
        value = self.raw(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise InvalidArgumentError(self.at(name), value, "must be text")
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value; False if it is absent."""
        value = self.raw(name)
        if value is not None:
            check_flag(self.at(name), value)
        return bool(value)

    def integer(self, name: str, default: int, least: int = 0, most: int | None = None) -> int:
        """Return an integer within limits."""
        value = self.raw(name)
        if value is None:
            return default
        if not is_integer(value, least, math.inf if most is None else most):
            limits = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise InvalidArgumentError(self.at(name), value, f"must be an integer {limits}")
        return int(value)

    def number(self, name: str, default: float | None, most: float = _INFINITE) -> float | None:
        """Return a number of at least 0."""
        value = self.raw(name)
        if value is None:
            return default
        if not is_number(value, 0, min(most, _LARGEST)):
            rule = "must be a number of at least 0" if most == _INFINITE else f"must be from 0 to {most:g}"
            raise InvalidArgumentError(self.at(name), value, rule)
        return float(value)

    def rate(self, name: str) -> float:
        """Return a probability or a share: 0 to 1; 0 if it is absent."""
        return self.number(name, 0.0, 1.0) or 0.0

    def items(self, name: str) -> list[tuple[str, Any]]:
        """Return the elements of a list with their paths."""
        value = self.raw(name)
        if value is None:
            return []
        if not isinstance(value, (list, tuple)):
            raise InvalidArgumentError(self.at(name), value, "must be a list")
        return [(f"{self.at(name)}[{number}]", each) for number, each in enumerate(value)]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(checked_text(path, each) for path, each in self.items(name))

    def below(self, name: str) -> ScenarioFields:
        """Return a mapping; an empty one if it is absent."""
        value = self.raw(name)
        return ScenarioFields(self.at(name), {} if value is None else value)

    def rest(self) -> dict[str, Any]:
        """Return the fields that were not asked for, and accept them."""
        out = {name: value for name, value in self.data.items() if name not in self._known}
        self._known += out
        return out

    def end(self) -> None:
        """Refuse the fields that were not asked for."""
        for name, value in self.data.items():
            if name not in self._known:
                similar = difflib.get_close_matches(name, self._known, 1)
                hint = f"did you mean {similar[0]}?" if similar else f"known here: {', '.join(sorted(self._known))}"
                raise InvalidArgumentError(self.at(name), value, f"is not a field ({hint})")


def checked_text(path: str, value: object) -> str:
    """Return a value that must be text.

    Raises:
        InvalidArgumentError: The value is not a list, or is empty.
    """
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(path, value, "must be text")
    return value
