"""Time zones by their names, with the same rules on every machine: those of the package tzdata.

The time zone database of the operating system is not used. It differs from machine to machine, and so would the days of
the records and the answers to questions about them.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: The environment variable with the time zone of stores that are created.
ZONE_VARIABLE = "RECOLLECT_ZONE"
_OFFSET = regex(r"([+-])([01][0-9]|2[0-3]):?([0-5][0-9])")
_UTC_NAMES = frozenset(("utc", "z", "etc/utc", "gmt", "etc/gmt"))


@cache
def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name: "UTC", an IANA name such as "Europe/Berlin", or an offset such as "+05:30".

    Raises:
        InvalidArgumentError: There is no such zone.

    >>> from datetime import datetime
    >>> datetime(2026, 7, 1, 12, tzinfo=zone_of("Europe/Berlin")).isoformat()
    '2026-07-01T12:00:00+02:00'
    """
    if name.casefold() in _UTC_NAMES:
        return UTC
    if offset := _OFFSET.fullmatch(name):
        distance = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-distance if offset[1] == "-" else distance)
    key = _names().get(name.casefold())
    if key is None:
        raise InvalidArgumentError("zone", name, "must be a time zone, such as UTC, Europe/Copenhagen or +05:30")
    with _file(key).open("rb") as file:
        return ZoneInfo.from_file(file, key=key)


def name_of(zone: tzinfo | str) -> str:
    """Return the name under which `zone_of` returns a time zone.

    Raises:
        InvalidArgumentError: It is not a time zone, or one without a name.

    >>> name_of("europe/berlin"), name_of(timezone(timedelta(hours=2))), name_of("Etc/UTC")
    ('Europe/Berlin', '+02:00', 'UTC')
    """
    if isinstance(zone, timezone):
        zone = datetime(2000, 1, 1, tzinfo=zone).isoformat()[19:]
    elif isinstance(zone, ZoneInfo):
        zone = zone.key or ""
    if not isinstance(zone, str):
        raise InvalidArgumentError("zone", zone, "must be the name of a time zone, such as Europe/Copenhagen")
    found = zone_of(zone)
    if isinstance(found, ZoneInfo):
        return found.key
    offset = datetime(2000, 1, 1, tzinfo=found).isoformat()[19:]
    return "UTC" if offset == "+00:00" else offset


def zone_of_machine() -> str:
    """Return the name of this machine's time zone: that in TZ, or else that in its settings.

    Raises:
        InvalidArgumentError: It has a zone without a name that is known.
    """
    import tzlocal  # only when a store is created

    local = datetime.now().astimezone()
    stated = os.environ.get("TZ")
    with suppress(ZoneInfoNotFoundError, InvalidArgumentError):
        if stated is None or stated.startswith(("/", ":/")):  # a file, whose path has the name
            name = name_of(tzlocal.get_localzone_name() or "UTC")
        else:
            name = name_of(stated.removeprefix(":") or "UTC")
        if local.astimezone(zone_of(name)).utcoffset() == local.utcoffset():  # else a file without a name decides
            return name
    rule = f"has no name that is known: pass zone=, or set {ZONE_VARIABLE}, for example to Europe/Copenhagen"
    raise InvalidArgumentError("the time zone of this machine", stated or local.tzname(), rule)


def rules_of(zone: tzinfo) -> str:
    """Return a text that changes whenever the rules of a time zone do."""
    if not isinstance(zone, ZoneInfo):
        return name_of(zone)
    return f"{zone.key} {hashlib.sha256(_file(zone.key).read_bytes()).hexdigest()[:16]}"


@cache
def _names() -> dict[str, str]:
    """Return the IANA names, by their case-folded forms."""
    return {name.casefold(): name for name in _data("zones").read_text("utf-8").split()}


def _file(key: str) -> Traversable:
    return _data("zoneinfo", *key.split("/"))


def _data(*path: str) -> Traversable:
    """Return a file of the package tzdata."""
    from importlib.resources import files  # which takes longer to import than to find a file with it

    return files("tzdata").joinpath(*path)
