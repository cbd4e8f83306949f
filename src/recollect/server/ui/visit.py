"""`Visit`: one request to the inspector: its parameters, the memory at the moment that it looks at, and its rights."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from recollect import BranchInfo, Memory
from recollect.errors import AccessError, InvalidArgumentError, RecollectError, ScopeError, UnsupportedError
from recollect.operations import MAIN, Zone
from recollect.operations.base import all_operations
from recollect.wire import OWN, READ, Desk, Grant, Place, Right, read_place

T = TypeVar("T")
#: Whom commits name as the actor, before the name of the token.
ACTOR = "inspector"
#: The parameters that say whose memory is shown, and of which branch.
PLACED = ("namespace", "branch", "person")
#: The parameters that links pass on: these, and the moment.
KEPT = (*PLACED, "at")
#: The parameters that say what was changed just before, and of which record.
MADE = ("done", "seq", "of", "hash", "conflicts", "was", "versions", "copies", "pending")
#: The parameters that say what a page is about, for which alone it may be said.
_BOUND = ("person", "id", "part", "commit", "name")
#: The parameter that signs them.
SIGNATURE = "sign"
#: A moment that is always the present one, whatever the times of commits. The clock decides what has expired then.
_NOW = datetime(9998, 1, 1, tzinfo=UTC)
#: The part of a memory that pages are about unless they name another one.
RECORDS = "records"
#: Maximum number of commits among which that of a change is searched.
_LOOKED_AT = 100
_MOST_DIGITS = 15


@dataclass
class Visit:
    """One request.

    Attributes:
        desk: What makes calls for clients.
        grant: What the client may do.
        default: The namespace that is shown if the request names none.
        query: The parameters of the address, or the fields of a form.
        api: The address of the server, if it also has the API; else "".
        key: Signs what pages say about a change that was made (`said`), so that no link of others can say it.
        page: The name of the page.
    """

    desk: Desk
    grant: Grant
    default: str
    query: Mapping[str, str]
    api: str = ""
    key: bytes = b""
    page: str = ""

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter."""
        return self.query.get(name, default)

    def given(self, *names: str) -> dict[str, str]:
        """Return those of some parameters that are not empty, as arguments of a call."""
        return {name: self.query[name] for name in names if self.query.get(name)}

    def number(self, name: str, default: int, most: int, least: int = 1) -> int:
        """Return a parameter that is a number.

        Raises:
            InvalidArgumentError: It is no number, or out of its range.
        """
        stated = self.text(name)
        if not stated:
            return default
        if not (stated.isascii() and stated.isdigit() and len(stated) <= _MOST_DIGITS and least <= int(stated) <= most):
            raise InvalidArgumentError(name, stated, f"must be a number from {least} to {most}")
        return int(stated)

    def flag(self, name: str) -> bool:
        """Return whether a parameter is set."""
        return self.text(name) not in ("", "0", "no")

    @property
    def namespace(self) -> str:
        """The namespace that is shown: the one of the request, or else that of the server, or one of the token."""
        allowed = self.grant.namespaces
        first = self.default if allowed is None or self.default in allowed else min(allowed)
        return self.text("namespace") or first

    @property
    def namespaces(self) -> list[str]:
        """The namespaces that the client may look at."""
        if self.grant.namespaces is not None:
            return sorted(self.grant.namespaces)
        return optional(self.present().namespaces) or []

    @property
    def branch(self) -> str:
        """The name of the branch that is shown."""
        return self.text("branch") or MAIN

    @property
    def is_main(self) -> bool:
        """Whether the main branch is shown."""
        return self.branch == MAIN

    @property
    def branches(self) -> list[BranchInfo]:
        """The branches of the namespace that the client may look at."""
        return optional(self.present().branches) or []

    @property
    def kept(self) -> dict[str, str]:
        """The parameters that links pass on."""
        return self.given(*KEPT)

    def link(self, page: str, changes: Mapping[str, Any]) -> str:
        """Return the address of a page with the parameters of this one, some of them changed; "" leaves one out."""
        return f"{page}?{self._query({**self._shown, **changes})}"

    def query_at(self, moment: object) -> str:
        """Return the query of an address that looks at a moment."""
        return self._query({**self.kept, "at": moment})

    def query_of(self, namespace: str) -> str:
        """Return the query of an address that looks at another namespace."""
        return self._query({"namespace": namespace})

    def query_on(self, branch: str) -> str:
        """Return the query of an address that looks at another branch of the namespace."""
        return self._query({**self.given("namespace", "person"), "branch": "" if branch == MAIN else branch})

    @property
    def now_query(self) -> str:
        """The query of this page as of now."""
        return self._query({**self._shown, "at": ""})

    @property
    def whole_query(self) -> str:
        """The query of this page, without what a change added to it."""
        return self._query(self._shown)

    @property
    def _shown(self) -> dict[str, str]:
        return {name: value for name, value in self.query.items() if name not in (*MADE, SIGNATURE)}

    @staticmethod
    def _query(parameters: Mapping[str, Any]) -> str:
        pairs = [(name, each) for name, value in parameters.items() for each in str(value).split("\n") if each != ""]
        return urlencode(pairs)

    @property
    def is_of_owner(self) -> bool:
        """Whether the client is a user who may see only what is theirs."""
        return self.grant.right == OWN

    def may(self, name: str) -> bool:
        """Return whether the client may execute an operation now. In the past, nothing can be changed."""
        kind = all_operations()[name]
        if kind.right != READ and self.text("at"):
            return False
        try:
            return self.grant.allows(kind, self.place().branch)
        except RecollectError:  # the request names no namespace that there can be
            return False

    @cached_property
    def is_whole(self) -> bool:
        """Whether the visit is not restricted to a user, an agent or a conversation, so that commits have numbers."""
        if self.grant.scope.fixed or self.text("person"):
            return False
        return self.head() is not None

    def present(self) -> Memory:
        """Return the memory of now. Its calls that read may count as uses: pages read `memory`."""
        return self.desk.memory(self.place(), self.grant, READ)

    @cached_property
    def memory(self) -> Memory:
        """The memory at the moment that the request names, by default now. Reading it counts as no use.

        Raises:
            UnknownTargetError: There is no such moment.
        """
        target = _NOW if self.moment is None else self.moment
        if isinstance(target, datetime) or self.grant.scope.fixed or not self.text("person"):
            return self.present().at(target)
        return self._unscoped().at(target).scoped(user=self.text("person"))  # a person has no numbers of commits

    @property
    def moment(self) -> int | str | datetime | None:
        """The moment that the request names; None: now."""
        return self.target(self.text("at")) if self.text("at") else None

    def target(self, stated: str) -> int | str | datetime:
        """Return what names a moment: the number of a commit, a time, or a cursor or the name of a snapshot.

        Raises:
            InvalidArgumentError: It is a time that is out of range.
        """
        if stated.isascii() and stated.isdigit() and len(stated) <= _MOST_DIGITS:
            return int(stated)
        try:
            moment = datetime.fromisoformat(stated)
        except ValueError:
            return stated
        try:
            return (moment if moment.tzinfo is not None else moment.replace(tzinfo=self.zone)).astimezone(UTC)
        except OverflowError:
            raise InvalidArgumentError("at", stated, "is out of the range of times") from None

    @cached_property
    def zone(self) -> ZoneInfo:
        """The time zone of the store."""
        return ZoneInfo(self.present().execute(Zone()))

    def part(self, memory: Memory) -> Memory:
        """Return the part of a memory that the request names, as a memory."""
        return memory._part(self.text("part") or RECORDS)

    def writing(self, right: Right, reason: str, *, whole: bool = False) -> Memory:
        """Return the memory for a change, whose commits have the actor of the inspector and a reason.

        Args:
            whole: Without the person that the request names.

        Raises:
            AccessError: The client may not change it.
            InvalidArgumentError: The visit is one of the past.
        """
        if self.text("at"):
            raise InvalidArgumentError("at", self.text("at"), "is a moment in the past, which cannot be changed")
        return self.desk.memory(self.place(reason, whole=whole), self.grant, right)

    @property
    def may_revert(self) -> bool:
        """Whether the client may take a commit back."""
        return self.may("revert") and not self.grant.scope.fixed

    def head(self) -> int | None:
        """Return the number of the newest commit; None if the client may not see those of the whole namespace."""
        return None if self.grant.scope.fixed else optional(lambda: self._unscoped().seq)

    def committed(self, since: int | None, reason: str, ids: Collection[str]) -> int | None:
        """Return the number of the commit that a change of this visit made after another one; None if there is none.

        Args:
            ids: Ids of records that it changed. Another visit may have made a commit with the same reason meanwhile.
        """
        if since is None or not ids:
            return None
        actor = self.grant.signed(ACTOR) or ""  # a server that this one asks adds its token
        memory = self._unscoped()
        while found := memory.changes(since, limit=_LOOKED_AT):
            for each in found:
                changed = {change.id for part in (each, *each.part_commits) for change in part.changes}
                if (each.actor or "").startswith(actor) and each.reason == reason and changed.issuperset(ids):
                    return each.seq
            since = found[-1].seq
        return None

    @cached_property
    def said(self) -> dict[str, str]:
        """What the address says about a change that was made just before: `MADE`, by name. Empty if it was not us."""
        stated = {name: self.query[name] for name in MADE if self.query.get(name)}
        sign = self.signature(self.page, self.query, stated)
        return stated if hmac.compare_digest(self.text(SIGNATURE).encode(), sign.encode()) else {}

    def signature(self, page: str, parameters: Mapping[str, str], said: Mapping[str, str]) -> str:
        """Return the signature of what a page shall say about a change: it holds for what that page looks at alone."""
        bound = [page, self.namespace, self.branch, *(parameters.get(name, "") for name in _BOUND)]
        text = json.dumps([bound, [[name, said[name]] for name in MADE if said.get(name)]])
        return hmac.new(self.key, text.encode(), "sha256").hexdigest()[:32]

    def _unscoped(self) -> Memory:
        """Return the memory of now without the person that the request names."""
        return self.desk.memory(self.place(whole=True), self.grant, READ)

    def place(self, reason: str | None = None, *, whole: bool = False) -> Place:
        """Return the branch and the scope of the request, for a change with its actor and a reason."""
        stated: dict[str, Any] = {"namespace": self.namespace}
        if not self.is_main:
            stated["branch"] = self.branch
        if self.text("person") and not whole:
            stated["scope"] = {"user": self.text("person")}
        if reason is not None:
            stated |= {"actor": ACTOR, "reason": reason}
        return read_place(stated)


#: What is raised where a client, or a memory like this one, has no such call.
_NOT_FOR_THIS = (AccessError, ScopeError, UnsupportedError)


def optional(call: Callable[[], T]) -> T | None:
    """Return what a call returns; None if the client may not make it, or there is no such call for this memory."""
    try:
        return call()
    except _NOT_FOR_THIS:
        return None
