"""Regular expressions that are compiled at their first use."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import recollect
from recollect.common.regexes import LazyRegex, regex


def all_of_the_package() -> dict[str, LazyRegex]:
    """Return every expression of the package, by its full name."""
    out: dict[str, LazyRegex] = {}
    for module in pkgutil.walk_packages(recollect.__path__, "recollect."):
        with suppress(ImportError):  # an optional library is missing
            loaded = importlib.import_module(module.name)
            out |= {f"{module.name}.{name}": each for name, each in vars(loaded).items() if isinstance(each, LazyRegex)}
    return out


def test_every_expression_of_the_package_can_be_compiled() -> None:
    found = all_of_the_package()
    assert len(found) > 200
    for name, each in found.items():
        try:
            re.compile(each.pattern, each.stated_flags)
        except re.error as error:
            pytest.fail(f"{name}: {error}")


def test_it_does_what_a_compiled_one_does() -> None:
    compiled = re.compile(r"(?P<a>\w)-(\d+)", re.IGNORECASE)
    for name, arguments in (
        ("search", ("x a-12",)),
        ("match", ("a-12 b",)),
        ("fullmatch", ("a-12",)),
    ):
        lazy = regex(compiled.pattern, re.IGNORECASE)
        found, expected = getattr(lazy, name)(*arguments), getattr(compiled, name)(*arguments)
        assert (found.span(), found.groups()) == (expected.span(), expected.groups())
    for name, given in (
        ("findall", ("a-1 b-2",)),
        ("split", ("a-1 b-2",)),
        ("sub", ("x", "a-1 b-2")),
        ("subn", ("x", "a-1 b-2")),
    ):
        assert getattr(regex(compiled.pattern, re.IGNORECASE), name)(*given) == getattr(compiled, name)(*given)
    assert [each[0] for each in regex("b").finditer("abcb")] == ["b", "b"]
    for name in ("flags", "groups", "groupindex", "pattern"):
        assert getattr(regex(compiled.pattern, re.IGNORECASE), name) == getattr(compiled, name)


def test_it_is_compiled_once_and_only_if_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    compile_of_re = re.compile

    def noted(*arguments: object) -> object:
        made.append(arguments[0])
        return compile_of_re(*arguments)  # type: ignore[call-overload]

    monkeypatch.setattr(re, "compile", noted)
    used, other = regex("used"), regex("other")
    assert made == []
    assert other.pattern == "other"
    used.search("unused")
    used.search("unused")
    used.sub("", "used")
    assert made == ["used"]


def test_an_error_in_it_is_raised_when_it_is_used() -> None:
    broken = regex("(")
    with pytest.raises(re.error):
        broken.search("")


def test_a_copy_matches_the_same() -> None:
    copies: tuple[Callable[[Any], Any], ...] = (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)))
    for make in copies:
        again = make(regex("a+", re.IGNORECASE))
        assert again.findall("aAb") == ["aA"]
    with pytest.raises(AttributeError):
        regex("a").serach  # type: ignore[attr-defined]  # noqa: B018
