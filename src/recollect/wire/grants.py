"""`Grant`: what a client may reach and do, which a server reads from its token."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from recollect.engine.scope import BY_TOKEN, Client, Place, Scope
from recollect.errors import AccessError, OriginError, ScopeError
from recollect.ledger.commits import Branch
from recollect.operations import At, Erase, ExecuteBatch, ListBranches, Operation, Stats, Update
from recollect.operations import Namespaces as NamespacesOperation
from recollect.operations.base import ADMIN, READ, RIGHTS, Right
from recollect.records.origins import OWNER, RANKS, USER, Origin

#: What a token may allow: a right of operations, or "own" (`OWN_OPERATIONS`).
Allowed: TypeAlias = Literal["own", "read", "write", "admin"]
ALLOWED: tuple[Allowed, ...] = get_args(Allowed)
OWN = ALLOWED[0]
#: The operations of the owner of records, on these alone: to find and read them and their versions, to correct, forget
#: and erase them, and to download them. Further ones, such as those that write something new, are not allowed.
OWN_OPERATIONS = frozenset(
    "at count erase export find forget forget_all forget_where get get_all grep history now pin recall stats update"
    " valid_until values zone".split()
)
#: What a person can change of a record of their own.
_OWN_FIELDS = frozenset(("content", "importance", "tags", "valid_from", "valid_to"))
#: What limits the clients of a server that is only read, and what to do about it.
_READ_ONLY = ("this server, which was started with --read-only,", "use one that can be written")


#: What of the hash of a token without a name a commit shows: "sha256:" and 12 digits.
_SHOWN = 19
_ENCODED = {letter: f"%{ord(letter):02X}" for letter in "%()"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The rights of a client: what it may reach and do.

    Attributes:
        right: "read", "write" or "admin"; or "own", of a user: what the user may do with records of their own.
        namespaces: The namespaces; None: all of the store.
        branches: The names of the branches of each; None: all.
        scope: The scope that the client cannot leave; empty: the whole of each namespace.
        actor: The name of its token, which commits name as the actor.
        by: What limits the client to this, and what to do about it, for messages; default: its token.
        client: What distinguishes the client from others: the hash of its token; "" of one without.
        origin: The class of origin of what it writes, at most.
        only_reads: Whether a client with the right "own" can only read, as on a server that is only read.
    """

    right: Allowed = ADMIN
    namespaces: frozenset[str] | None = None
    branches: frozenset[str] | None = None
    scope: Scope = field(default_factory=Scope)
    actor: str | None = None
    by: tuple[str, str] | None = None
    client: str = ""
    only_reads: bool = False
    origin: Origin = OWNER

    def read_only(self) -> Grant:
        """Return what this allows on a server that is only read."""
        if self.right == OWN:
            return replace(self, only_reads=True, by=_READ_ONLY)
        return self if self.right == READ else replace(self, right=READ, by=_READ_ONLY)

    def check(self, right: Right, branch: Branch) -> None:
        """Raise AccessError unless a right in a namespace is allowed."""
        if self.right == OWN or RIGHTS.index(right) > RIGHTS.index(self.right):
            what = f"what needs the right to {right}" if right != ADMIN else "what needs the right admin"
            raise AccessError(what, *(self.by or ()))
        self._check_namespace(branch)

    def check_use(self, right: Right, branch: Branch) -> None:
        """Raise AccessError unless operations of a right may be allowed in a namespace: each is checked by itself."""
        if self.right == OWN:
            self._check_namespace(branch)
        else:
            self.check(right, branch)

    def _check_namespace(self, branch: Branch) -> None:
        if self.namespaces is not None and branch.owner.namespace not in self.namespaces:
            raise AccessError(f"the namespace {branch.owner.namespace!r}")
        self._check_branch(branch.name)

    def _check_branch(self, name: str) -> None:
        if self.branches is not None and name not in self.branches:
            raise AccessError(f"the branch {name!r}")

    def allows(self, operation: type[Operation], branch: Branch) -> bool:
        """Return whether a kind of operation is allowed in a namespace."""
        try:
            if self.right == OWN:
                self._check_namespace(branch)
                self._check_own(operation)
                return True
            self.check(operation.right, branch)
        except AccessError:
            return False
        return not (operation.of_store and (self.namespaces is not None or self.scope.fixed))

    def check_operation(self, operation: Operation, branch: Branch) -> None:
        """Raise AccessError unless an operation in a namespace is allowed."""
        if self.right == OWN:
            self._check_namespace(branch)
            inner = operation.operation if isinstance(operation, At) else operation
            for each in (operation, inner):
                self._check_own(type(each))
            if isinstance(inner, Update) and (callable(inner.changes) or inner.changes.keys() - _OWN_FIELDS):
                raise AccessError(f"changing other fields than {', '.join(sorted(_OWN_FIELDS))}")
            return
        self.check(operation.needs, branch)
        for name in operation.branches:
            self._check_branch(name)
        if (self.namespaces is not None or self.scope.fixed) and operation.concerns_all:
            raise AccessError("what concerns the whole store")

    def _check_own(self, operation: type[Operation]) -> None:
        if operation.name not in OWN_OPERATIONS:
            raise AccessError(f"the operation {operation.name!r}")
        if self.only_reads and operation.right != READ and operation is not At:
            raise AccessError(f"the operation {operation.name!r}", *(self.by or ()))

    def signed(self, stated: str | None) -> str | None:
        """Return the actor of a commit: what a client states, followed by the name of its token.

        >>> Grant(actor="mobile", client="sha256:5e88").signed("root (token admin)")
        'root (token admin) (token mobile)'

        The last parenthesis is that of the server: in it, parentheses of the name are percent-encoded. A client without
        a token is trusted with what it states; of one that states nothing, it is only the name.
        """
        if not self.client:
            return stated or self.actor
        name = self.actor or self.client[:_SHOWN]  # a token may have no name
        if stated or "(token " in name:
            name = "".join(_ENCODED.get(letter, letter) for letter in name)
        return f"{stated} (token {name})" if stated else name if self.actor else None

    def placed(self, place: Place) -> Place:
        """Return a place with the scope and the actor of this access.

        Raises:
            AccessError: The place names another scope.
            OriginError: It states a higher class of origin.
        """
        scope = place.scope
        if self.scope.fixed:
            try:
                scope = self.scope.narrowed(**dict(place.scope.fixed))
            except ScopeError:
                raise AccessError(f"the scope {place.scope}, but only {self.scope}") from None
        origin = place.origin
        if RANKS[origin] > RANKS[self.origin]:
            if RANKS[origin] > RANKS[USER]:  # what it writes as is a class "at most", so any other one is lowered
                raise OriginError(f"the class {origin!r}", self.origin, "use a token that has it (recollect token)")
            origin = self.origin
        client: Client = place.client
        if self.client:  # one that may write as the user names itself the same when it does
            client = BY_TOKEN if RANKS[self.origin] < RANKS[USER] else ""
        return place._replace(scope=scope, actor=self.signed(place.actor), origin=origin, client=client)

    def reduced(self, operation: Operation, result: Any) -> Any:
        """Return a result without what would reveal other namespaces, also in the results of its parts."""
        if isinstance(operation, At):
            return self.reduced(operation.operation, result)
        if isinstance(operation, ExecuteBatch):
            parts = zip(operation.operations, result, strict=True)
            return [self.reduced(part, each) for part, each in parts]
        if isinstance(operation, NamespacesOperation) and self.namespaces is not None:
            return [name for name in result if name in self.namespaces]
        if isinstance(operation, ListBranches) and self.branches is not None:
            return [each for each in result if each.name in self.branches]
        if isinstance(operation, Stats) and (self.right != ADMIN or self.namespaces is not None):
            return {name: value for name, value in result.items() if name != "store"}
        if isinstance(operation, Erase) and self.right == OWN:  # paths of the server's machine
            return replace(result, copies=tuple("another store in the folder of this one" for _ in result.copies))
        return result
