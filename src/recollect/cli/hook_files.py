"""The files in which coding agents find their hooks: reading and changing them, so that all else in them stays.

A file is JSON with an object "hooks": event -> entries, each with a list of hooks. A hook of ours is found again by its
command. What cannot be written as it was, or is in another form, is an error before anything is changed.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError

#: A command of ours.
_OURS = regex(r"('[^']*'|\S+) (-P )?-m recollect hooks run (claude-code|codex)\b")
_UNCHANGED = "nothing was changed"
#: The event at which a session begins, of all clients.
START = "SessionStart"
Hooks = Mapping[str, Any]


class Client(NamedTuple):
    """A coding agent that has hooks.

    Attributes:
        name: Its name, which is also that of the format of its transcripts.
        folder: Its folder in the home, and in a project.
        variable: The environment variable with another folder for the user.
        file: The file with its hooks.
        end: The event at which a session is stored.
        seconds: How long it waits for a hook, at the start and at the end.
    """

    name: str
    folder: str
    variable: str
    file: str
    end: str
    seconds: tuple[int, int] = (15, 120)


CLIENTS = {
    each.name: each
    for each in (
        Client("claude-code", ".claude", "CLAUDE_CONFIG_DIR", "settings.json", "SessionEnd"),
        Client("codex", ".codex", "CODEX_HOME", "hooks.json", "Stop"),
    )
}


class HookFile:
    """The file of a client.

    Args:
        client: The client.
        path: The file; it need not exist.

    Raises:
        InvalidArgumentError: It cannot be read, or has another form.
    """

    def __init__(self, client: Client, path: Path) -> None:
        self.client, self.path = client, path
        self._before, self._content = _read(path)
        self._after = ""

    @staticmethod
    def of(client: Client, *, project: bool) -> HookFile:
        """Return the file of the user, or that of the project in the current folder."""
        if project:
            return HookFile(client, Path(client.folder, client.file))
        home = os.environ.get(client.variable) or os.path.join("~", client.folder)
        return HookFile(client, Path(os.path.expanduser(home), client.file))

    def change(self, changed: Callable[[Hooks], dict[str, Any]]) -> list[str]:
        """Change its hooks, not yet in the file, and return the lines of the difference; none if nothing changes.

        Raises:
            InvalidArgumentError: It has a value that would not be written as it was.
        """
        hooks = changed(self._content.get("hooks", {}))
        rest = {key: value for key, value in self._content.items() if key != "hooks"}
        content = {**rest, **({"hooks": hooks} if hooks else {})}
        try:
            self._after = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
            self._after.encode("utf-8")
        except ValueError as error:
            rule = f"has a value that cannot be written again ({error}): {_UNCHANGED}"
            raise InvalidArgumentError("file", str(self.path), rule) from None
        if json.loads(self._after) == self._content:
            return []
        name = str(self.path)
        return list(difflib.unified_diff(self._before.splitlines(), self._after.splitlines(), name, name, lineterm=""))

    def write(self) -> None:
        """Write what was changed, with the permissions that the file had.

        The file as it was before the first change stays beside it.

        Raises:
            InvalidArgumentError: It cannot be written; nothing was changed.
        """
        if _read(self.path)[0] != self._before:
            rule = f"was changed by another program, so run this command again: {_UNCHANGED}"
            raise InvalidArgumentError("file", str(self.path), rule)
        path = Path(os.path.realpath(self.path))
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        kept = path.with_name(f"{path.name}.before-recollect")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = path.stat().st_mode & 0o777 if self._before else 0o600
            if self._before and not kept.exists():
                _create(kept, self._before, mode)
            _create(draft, self._after, mode)
            os.replace(draft, path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise InvalidArgumentError("file", str(self.path), f"cannot be written ({error}): {_UNCHANGED}") from None


def _create(path: Path, text: str, mode: int) -> None:
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", newline=""
    ) as file:
        file.write(text)
    path.chmod(mode)


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """Return a file as text and as JSON; ("", {}) if there is none."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except FileNotFoundError:
        return "", {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError("file", str(path), f"cannot be read ({error}): {_UNCHANGED}") from None
    try:
        content = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        rule = f"is not JSON, without comments ({error}): {_UNCHANGED}"
        raise InvalidArgumentError("file", str(path), rule) from None
    found = content.get("hooks", {}) if isinstance(content, dict) else None
    if not isinstance(found, dict) or not all(map(_is_list_of_entries, found.values())):
        raise InvalidArgumentError("file", str(path), f"has hooks in a form that is not known: {_UNCHANGED}")
    return text, content


def _is_list_of_entries(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("hooks"), list)
        and all(isinstance(each, dict) for each in entry["hooks"])
        for entry in value
    )


def with_ours(found: Hooks, client: Client, command: str) -> dict[str, Any]:
    """Return hooks with ours, once."""
    out = without_ours(found)
    entries = {START: client.seconds[0], client.end: client.seconds[1]}
    for event, seconds in entries.items():
        entry: dict[str, Any] = {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
        if event == START:
            entry = {"matcher": "startup|clear|compact", **entry}
        out[event] = [*out.get(event, []), entry]
    return out


def without_ours(found: Hooks) -> dict[str, Any]:
    """Return hooks without ours, and without events that have none."""
    out: dict[str, Any] = {}
    for event, entries in found.items():
        left = []
        for entry in entries:
            others = [each for each in entry["hooks"] if not _OURS.match(str(each.get("command", "")))]
            if others or not entry["hooks"]:
                left.append({**entry, "hooks": others})
        if left or not entries:
            out[event] = left
    return out
