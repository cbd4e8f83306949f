"""Every error that Recollect raises on purpose.

All have one base class, so `except RecollectError` catches them. Each class has a stable `code` for programs and stores
its fields in `args`, so that it survives pickling and has a JSON form. The message says what happened, what state the
store is in, and what to do. An error that corresponds to a built-in exception is a subclass of it too, in brackets:

    RecollectError
        InvalidArgumentError (ValueError)
        UnknownArgumentError (TypeError)
        MissingArgumentError (TypeError)
        InvalidRecordError (ValueError)
        InvalidFilterError (ValueError)
        InvalidOperationError (ValueError)
        InvalidQueryError (ValueError)
        UnsupportedError
        CodecError (ValueError)
        UnknownRecordError (LookupError)
        AmbiguousIdError (LookupError)
        UnknownTargetError (LookupError)
        UnknownBranchError (LookupError)
        BranchExistsError
        BranchInUseError
        BranchLimitError
        BisectError
        RecordExistsError
        ConflictError
        IdempotencyError
        ValidityError
        QuotaError
        RejectedError
        SummaryError
        ScopeError
        OriginError
        ReadOnlyMemoryError
        ClosedError
        DeadlineError
        ForkedError
        MissingExtraError (ImportError)
        EmbedderError
            EmbedderRefusedError
            EmbedderUnavailableError
        ModelError
            ModelRefusedError
            ModelUnavailableError
            ModelReplyError
        ImportFormatError (ValueError)
        ServerError
            ProtocolError (ValueError)
            TokenError
            AccessError
            ResultChangedError
            AnswerTooLargeError
            ServerBusyError
            ServerVersionError
        StoreError
            StoreMissingError
            NotAStoreError
            NewerFormatError
            OlderFormatError
            WrongKeyError
            SecretNeededError
            WrongSecretError
            KeyFileMissingError
            NotEncryptedError
            DamagedStoreError
            ReadOnlyStoreError
            StoreBusyError
            StoreFullError
            StoreReplacedError
                StoreChangedError
            NoMemoryError (MemoryError)
            StoreIOError
                CommitInDoubtError
            StoreServerError
            StaleReadError
            StoreRefusedError
"""

from __future__ import annotations

from functools import wraps
from typing import Any, NamedTuple

from recollect.quoting import FORMATTER, Shown, as_message, plain, shown, without_passwords, without_passwords_in

#: Code -> class of error.
_BY_CODE: dict[str, type[RecollectError]] = {}


class RecollectError(Exception):
    """The base class of all errors of this package.

    Attributes:
        code: A stable name of the class, for programs; of an error that another release sent, its own.
        args: The fields of the error, in the order of its constructor's parameters.
        unchanged: Whether it was raised by a call that writes, and nothing was changed; the message then says so. Set
            by what executes the call: the same error of a call that reads has nothing to say about it.
    """

    code: str = "error"
    unchanged: bool = False
    #: The text with the numbers of its fields: `{0}`, `{0!r}`, `{0!q}` as `shown` quotes it, and the names of others:
    #: `{state}`, and `{detail}` of an error of the store. A class can write `__str__` instead.
    _template: str = ""

    @property
    def _state(self) -> str:
        return "; nothing was changed" if self.unchanged else ""

    @property
    def _stated(self) -> tuple[Any, ...]:
        """The fields of `_template` that have numbers."""
        return self.args

    @property
    def _named(self) -> dict[str, str]:
        """The fields of `_template` that have names."""
        return {"state": self._state}

    def __init_subclass__(cls) -> None:
        """Escape control characters and hide passwords in every message: they quote paths and replies of servers."""
        super().__init_subclass__()
        if "code" in cls.__dict__:
            _BY_CODE[cls.code] = cls
        if "_template" in cls.__dict__:  # which counts more than what a base class writes
            cls.__str__ = RecollectError.__str__  # type: ignore[method-assign]
        elif (message := cls.__dict__.get("__str__")) is not None:
            cls.__str__ = wraps(message)(lambda self: as_message(message(self)))  # type: ignore[method-assign]

    def __str__(self) -> str:
        stated = self._template and FORMATTER.format(self._template, *self._stated, **self._named)
        return as_message(stated or super().__str__())

    def to_json(self) -> dict[str, Any]:
        """Return the error as `{"error": code, "message": ..., "args": [...]}`, with `unchanged` if it is true."""
        out = {"error": self.code, "message": str(self), "args": [plain(arg) for arg in self.args]}
        return {**out, "unchanged": True} if self.unchanged else out

    @staticmethod
    def from_json(data: object) -> RecollectError:
        """Rebuild an error from its JSON form: the same class with the same fields.

        An error with a code or with fields that this release does not know, as a newer server may send it, becomes a
        RecollectError with the same code and message.

        Raises:
            InvalidOperationError: It is not the JSON form of an error.
        """
        match data:
            case {"error": str(code), "message": str(message), "args": list(args)}:
                kind = _BY_CODE.get(code)
                unknown = RecollectError(message)
                unknown.code = code
                if kind is None:
                    return unknown
                try:
                    # Values that the constructor quotes are quoted already.
                    quoted = [isinstance(arg, Shown) for arg in kind(*args).args]
                    known = kind(*(Shown(arg) if each else arg for arg, each in zip(args, quoted, strict=True)))
                except (TypeError, ValueError):  # its fields are those of another release
                    return unknown
                known.unchanged = isinstance(data, dict) and data.get("unchanged") is True
                return known
        raise InvalidOperationError(data, "is not the JSON form of an error")


def _violated(name: str, value: object, rule: str) -> str:
    """A rule that a value violates, as a sentence."""
    if rule.startswith(("must ", "may ")):
        return f"{name} {rule}, got {value}"
    verbs = ("is", "has", "contains", "does", "cannot", "names", "requires", "begins", "exists", "already")
    verb = rule.partition(" ")[0] in verbs
    return f"{name} {value} {rule}" if verb else f"{name} = {value}: {rule}"


#: The arguments that are addresses, or that one is easily passed for.
_ADDRESSES = frozenset(("address", "path", "read_from", "db", "http", "key file", "embedder"))


class InvalidArgumentError(RecollectError, ValueError):
    """An argument has a value that the call does not accept. Raised before anything is changed.

    Args:
        name: The argument.
        value: The value that was passed. `args` contains its `repr`, cut to 80 characters.
        rule: What the argument must be.
    """

    code = "invalid_argument"

    def __init__(self, name: str, value: object, rule: str) -> None:
        super().__init__(name, shown(without_passwords_in(value, address=name in _ADDRESSES)), rule)

    def __str__(self) -> str:
        return _violated(*self.args)


class UnknownArgumentError(RecollectError, TypeError):
    """The call does not take this argument. Raised before anything is changed.

    Args:
        name: The unknown argument; if it was passed by position, its `repr`.
        similar: The argument that was probably meant, or "".
        positional: Whether it was passed by position, after the last one that may be.
    """

    code = "unknown_argument"

    def __init__(self, call: str, name: str, similar: str = "", positional: bool = False) -> None:
        super().__init__(call, name, similar, positional)

    def __str__(self) -> str:
        if self.args[3]:
            advice = f", such as {self.args[2]}=..." if self.args[2] else ""
            return f"{self.args[0]} does not take {self.args[1]} by position: pass it by name{advice}"
        hint = f" (did you mean {self.args[2]!r}?)" if self.args[2] else ""
        return f"{self.args[0]} has no argument {self.args[1]!r}{hint}"


class MissingArgumentError(RecollectError, TypeError):
    """The call needs an argument that was not passed. Raised before anything is changed."""

    code = "missing_argument"
    _template = "{0} needs the argument {1!r}"

    def __init__(self, call: str, name: str) -> None:
        super().__init__(call, name)


class InvalidRecordError(RecollectError, ValueError):
    """A field of a record has an invalid value.

    Args:
        value: The value that was passed. `args` contains its `repr`, cut to 80 characters.
        rule: What the field must be.
    """

    code = "invalid_record"

    def __init__(self, field: str, value: object, rule: str) -> None:
        super().__init__(field, shown(value), rule)

    @property
    def field(self) -> str:
        """The field."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{_violated(*self.args)}{self._state}"


class InvalidFilterError(RecollectError, ValueError):
    """A filter is invalid: a value, its JSON form or its text form. Raised before anything is changed."""

    code = "invalid_filter"
    _template = "invalid filter {0}: {1}"

    def __init__(self, what: object, rule: str) -> None:
        super().__init__(shown(what), rule)


class InvalidOperationError(RecollectError, ValueError):
    """The JSON form of an operation is invalid."""

    code = "invalid_operation"
    _template = "invalid operation {0}: {1}{state}"

    def __init__(self, what: object, rule: str) -> None:
        super().__init__(shown(what), rule)


class InvalidQueryError(RecollectError, ValueError):
    """A full-text query (grep) is invalid or over a limit. Raised before anything is changed."""

    code = "invalid_query"
    _template = "invalid query {0}: {1}"

    def __init__(self, query: str, rule: str) -> None:
        super().__init__(shown(query), rule)


class UnsupportedError(RecollectError):
    """The call is valid, but this store, platform or combination of arguments does not support it."""

    code = "unsupported"
    _template = "{0}: {1}{state}"

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)


class CodecError(RecollectError, ValueError):
    """Bytes are not a canonical encoding of a record."""

    code = "codec"
    _template = "not a canonical record: {0} at byte {1}; the bytes were left as they are"

    def __init__(self, rule: str, offset: int) -> None:
        super().__init__(rule, offset)


class UnknownRecordError(RecollectError, LookupError):
    """There is no record with this id. (Forgetting a record that was forgotten before is not an error.)"""

    code = "unknown_record"
    _template = "no record {0!q} in namespace {1!r}{state}"

    def __init__(self, record_id: str, namespace: str) -> None:
        super().__init__(record_id, namespace)


class AmbiguousIdError(RecollectError, LookupError):
    """Several ids begin with the text that was passed as the beginning of one."""

    code = "ambiguous_id"
    _template = "several ids begin with {0!q}{state}: pass more of {1}"

    def __init__(self, beginning: str, ids: str) -> None:
        super().__init__(beginning, ids)


class UnknownTargetError(RecollectError, LookupError):
    """There is no such moment in the history of the namespace.

    Args:
        target: What names the moment. `args` contains its `repr`, cut to 80 characters.
        why: Why there is none.
    """

    code = "unknown_target"
    _template = "{0} names no moment of this memory: {1}{state}"

    def __init__(self, target: object, why: str) -> None:
        super().__init__(shown(target), why)


class UnknownBranchError(RecollectError, LookupError):
    """The namespace has no branch of this name, or it was dropped.

    Args:
        name: The name of the branch.
        namespace: The name of the namespace.
    """

    code = "unknown_branch"
    _template = "namespace {1!q} has no branch {0!q}{state}: `recollect branch list` shows those that it has"

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(name, namespace)


class BranchExistsError(RecollectError):
    """The namespace has, or had, a branch of this name. No name is used again, so that merges stay unambiguous.

    Args:
        name: The name of the branch.
        namespace: The name of the namespace.
    """

    code = "branch_exists"
    _template = "namespace {1!q} has or had a branch {0!q}{state}: choose another name"

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(name, namespace)


class BranchInUseError(RecollectError):
    """A branch cannot be dropped, because others continue it.

    Args:
        name: The name of the branch.
        others: The names of those that continue it, for people.
    """

    code = "branch_in_use"
    _template = "branch {0!q} is continued by {1}{state}: drop that first"

    def __init__(self, name: str, others: str) -> None:
        super().__init__(name, others)


class BranchLimitError(RecollectError):
    """The namespace cannot have more branches.

    Args:
        namespace: The name of the namespace.
        what: What there is a limit of.
        limit: The limit.
    """

    code = "branch_limit"
    _template = "namespace {0!q} can have at most {2} {1}{state}: drop those that are not needed any more"

    def __init__(self, namespace: str, what: str, limit: int) -> None:
        super().__init__(namespace, what, limit)


class BisectError(RecollectError):
    """The ends of a bisection are not one commit with a good answer and one with a bad answer.

    Args:
        problem: What they are.
        good: The seq of the end that was named as good.
        good_answer: The answer there: the id and the text of its first hit, or that there is none.
        bad: The seq of the end that was named as bad.
        bad_answer: The answer there.
    """

    code = "bisect"
    _template = "{0}: at commit {1} the answer is {2}, at commit {3} it is {4}{state}"

    def __init__(self, problem: str, good: int, good_answer: str, bad: int, bad_answer: str) -> None:
        super().__init__(problem, good, good_answer, bad, bad_answer)


class RecordExistsError(RecollectError):
    """The id is in use and `if_exists="error"` was passed, or a scope already shows a record under this id."""

    code = "record_exists"
    _template = "record {0!q} already exists with hash {1}{state}: use another id, or read that record and decide"

    def __init__(self, record_id: str, current: str) -> None:
        super().__init__(record_id, current)


class ConflictError(RecollectError):
    """A condition (`expect`, `expect_head`) is not met. The error contains the current state."""

    code = "conflict"

    def __init__(self, what: str, expected: str, current: str, satisfied: bool = False) -> None:
        super().__init__(what, expected, current, satisfied)

    @property
    def current(self) -> str:
        """The current hash (or head); "absent" if there is none."""
        return str(self.args[2])

    @property
    def satisfied(self) -> bool:
        """True if the store already has the requested state, through an earlier attempt or another writer."""
        return bool(self.args[3])

    def __str__(self) -> str:
        return f"{self.args[0]} was expected to be {self.args[1]} but is {self.args[2]}{self._state}: " + (
            "it already has the state that this call requested" if self.satisfied else "read it again and decide"
        )


class IdempotencyError(RecollectError):
    """A write was not executed, because its idempotency key belongs to another one, or because its answer is gone.

    Args:
        rule: What is the matter with it.
    """

    code = "idempotency"
    _template = "the idempotency key {0} {1}; nothing was written: use a new key for a new write"

    def __init__(self, key: str, rule: str) -> None:
        super().__init__(shown(key), rule)


class ValidityError(RecollectError):
    """A record is not valid at the time from which another one should replace it.

    Args:
        record_id: The id of the record.
        at: That time, in ISO 8601.
        valid_from: The start of its validity, in ISO 8601; None if it is open.
        valid_to: The end of its validity, in ISO 8601; None if it is open.
    """

    code = "validity"

    def __init__(self, record_id: str, at: str, valid_from: str | None, valid_to: str | None) -> None:
        super().__init__(record_id, at, valid_from, valid_to)

    def __str__(self) -> str:
        record_id, at, start, end = self.args
        interval = " ".join(f"{word} {each}" for word, each in (("from", start), ("until", end)) if each is not None)
        return (
            f"record {record_id!r} is valid {interval}, not at {at}{self._state}: pass a time at which it is valid, or "
            f"supersede the record that replaced it (supersedes={record_id})"
        )


class QuotaError(RecollectError):
    """The write would exceed the quota of the namespace, or of one of its users.

    Args:
        what: "records" or "bytes".
        limit: The quota; None within a scope that shares the quota with others.
        used: The amount that the write would have led to; None within such a scope.
        when_full: The policy of the quota (`Memory.set_quota`).
        owner: Whose quota it is if each user, agent or conversation has its own, such as "user 'ana'"; otherwise "".
    """

    code = "quota"

    def __init__(
        self, namespace: str, what: str, limit: int | None, used: int | None, when_full: str, owner: str = ""
    ) -> None:
        super().__init__(namespace, what, limit, used, when_full, owner)

    def __str__(self) -> str:
        if self.args[2] is None:
            return f"the quota of {self.args[1]} of namespace {self.args[0]!r} is used up{self._state}"
        why = (
            ""
            if self.args[4] == "refuse"
            else ", and evicting every record that may be evicted does not make enough room"
        )
        owner = f"{self.args[5]} in " if self.args[5] else ""
        whose = f"{owner}namespace {self.args[0]!r}"
        return (
            f"the quota of {whose} is {self.args[2]} {self.args[1]}, and this write would make it {self.args[3]}{why}"
            f"{self._state}: forget some{' of its records' if owner else ' records'}, or raise the quota"
        )


class Verdict(NamedTuple):
    """Why a policy of the memory rejected a text.

    Attributes:
        policy: The policy, such as "redaction".
        reason: What it found, as a sentence without a subject: "contains a secret".
        found: What it found, as words for programs, such as ("secret", "email").
    """

    policy: str
    reason: str
    found: tuple[str, ...] = ()


#: The policy of a `RejectedError` that `recollect serve` raises for its socket, whatever the memory's policies are.
SOCKET_SALIENCE = "salience of the socket"


class RejectedError(RecollectError):
    """A policy of the memory, or of the server's socket, does not allow this text, so it was not stored."""

    code = "rejected"

    def __init__(self, policy: str, reason: str, *found: str) -> None:
        super().__init__(policy, reason, *found)

    def __str__(self) -> str:
        policy, reason, *_ = self.args
        what, remedy = f"{policy} policy of this memory", "the policy with set_policies() or `recollect policies`"
        if policy == SOCKET_SALIENCE:
            what, remedy = "salience rules of this server's socket", "start the server with --salience off"
        return f"rejected by the {what}: the text {reason}; nothing was stored: change the text, or {remedy}"

    @property
    def verdict(self) -> Verdict:
        """The verdict of the policy."""
        policy, reason, *found = self.args
        return Verdict(policy, reason, tuple(found))


class SummaryError(RecollectError):
    """Records could not be summarised. They stay as they are."""

    code = "summary"
    _template = (
        "the records of the kind {0!r} that belong to {1!q} could not be summarised: {2}; nothing was changed: call it "
        "without strict to replace the other groups"
    )

    def __init__(self, kind: str, key: str, reason: str) -> None:
        super().__init__(kind, key, reason)


class ScopeError(RecollectError):
    """The call would read or write outside the scope of this memory."""

    code = "scope"
    _template = "{0} is outside the scope {1}{state}: use the memory without scope"

    def __init__(self, what: str, scope: str) -> None:
        super().__init__(what, scope)


class OriginError(RecollectError):
    """The writer is less trusted than what it would state or change (docs/trust.md). Nothing was changed.

    Args:
        what: What it would state or change.
        writer: The class of origin of the writer.
        advice: What to do.
    """

    code = "origin"
    _template = "{0} is not for a writer of the class {1}; nothing was changed: {2}"

    def __init__(
        self,
        what: str,
        writer: str,
        advice: str = "ask the user, or write as one (as_origin, --origin, a token with that class)",
    ) -> None:
        super().__init__(what, writer, advice)


class ReadOnlyMemoryError(RecollectError):
    """The call is not one that a memory of a past moment has: it writes, or concerns the present."""

    code = "read_only_memory"
    _template = (
        "{0} is not possible with a memory of a past moment, which is read-only{state}: use the memory that it was "
        "created from"
    )

    def __init__(self, what: str) -> None:
        super().__init__(what)


class ClosedError(RecollectError):
    """The memory, batch or store has been closed."""

    code = "closed"
    _template = "{0} is closed{state}: open it again"

    def __init__(self, what: str) -> None:
        super().__init__(what)


class DeadlineError(RecollectError):
    """A call took longer than it may, or its client has left, and the work ended (`recollect.common.deadlines`).

    What it read changed nothing. What it had written was undone as a whole, since no call ends so after its commit.

    Args:
        seconds: How long it could take.
        is_left: Whether it ended because its client has left.
    """

    code = "deadline"

    def __init__(self, seconds: float, is_left: bool = False) -> None:
        super().__init__(seconds, is_left)

    def __str__(self) -> str:
        why = "its client has left" if self.args[1] else f"it takes longer than {self.args[0]} s"
        return f"this was ended: {why}{self._state}: ask for less at a time, or allow it more time"


class ForkedError(RecollectError):
    """The memory was opened before a fork and is used in the child process, or cannot be opened again there."""

    code = "forked"

    def __init__(self, path: str, opened_in: int, again: bool = False) -> None:
        super().__init__(path, opened_in, *([True] if again else []))

    def __str__(self) -> str:
        what = "open it again in this process"
        if len(self.args) > 2:
            what = (
                "it cannot be opened here, as SQLite would take the locks of that process for its own; fork before you "
                "open it, or install a compiled package (docs/tuning.md)"
            )
        where = f"{self.args[0]} was opened by process {self.args[1]}, and this process is a fork of it"
        return f"{where}{self._state}: {what}"


class MissingExtraError(RecollectError, ImportError):
    """An optional library that the call needs is not installed."""

    code = "missing_extra"
    _template = "{0} needs the library {1}, which is not installed{state}: pip install 'recollect[{2}]'"

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(what, library, extra)


class EmbedderError(RecollectError):
    """The embedder returned no vectors or invalid ones. The message never contains an API key."""

    code = "embedder"
    _template = "the embedder {0} failed: {1}; no vectors of these texts were stored"

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(name, detail)


class EmbedderRefusedError(EmbedderError):
    """The embedder refused these texts, for example because one is too long. Others may work."""

    code = "embedder_refused"


class EmbedderUnavailableError(EmbedderError):
    """The embedder cannot be used with its current settings. Other texts would fail as well."""

    code = "embedder_unavailable"


class ModelError(RecollectError):
    """A language model gave no usable reply. Nothing was stored because of it."""

    code = "model"
    _template = "the model {0} failed: {1}; nothing was stored: try again, or do without a model"

    def __init__(self, model: str, detail: str) -> None:
        super().__init__(model, detail)


class ModelRefusedError(ModelError):
    """The server of a model refused the prompt."""

    code = "model_refused"
    _template = "the model {0} refused the prompt: {1}; nothing was stored: send less or other text"


class ModelUnavailableError(ModelError):
    """A model cannot be used with these settings."""

    code = "model_unavailable"
    _template = "the model {0} cannot be used: {1}; nothing was stored: correct the settings"


class ModelReplyError(ModelError):
    """The reply of a model does not have the form that was asked for."""

    code = "model_reply"
    _template = "the reply of the model {0} cannot be read: {1}; nothing was stored: try again"


class ImportFormatError(RecollectError, ValueError):
    """The file to import does not have the named format."""

    code = "import_format"

    def __init__(self, path: str, place: str, rule: str) -> None:
        super().__init__(path, place, rule)

    def __str__(self) -> str:
        where = f", {self.args[1]}" if self.args[1] else ""
        return f"{self.args[0]}{where}: {self.args[2]}; nothing was imported from it"


class ServerError(RecollectError):
    """Base of errors about a request itself, apart from the errors of what the request asks for.

    Args:
        detail: What happened.
    """

    code = "server"
    _template = "the server could not do this: {0}; see its log"

    def __init__(self, detail: str, *more: object) -> None:
        super().__init__(detail, *more)


class ProtocolError(ServerError, ValueError):
    """A request or an answer is not what the protocol allows. A server has done nothing; the connection goes on.

    Args:
        rule: What is wrong with it.
    """

    code = "protocol"
    _template = "not a valid message: {0}; nothing was done"

    def __init__(self, rule: str) -> None:
        super().__init__(rule)


class TokenError(ServerError):
    """A request has no token, or one that the server does not know. Nothing was done.

    Args:
        reason: What is the matter with it.
    """

    code = "token"
    _template = (
        "{0}; nothing was done: send Authorization: Bearer TOKEN "
        "(recollect.connect(..., token=...), or RECOLLECT_TOKEN for a command)"
    )

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class AccessError(ServerError):
    """The token of a request, or the server, does not allow what it asks for. Nothing was done.

    Args:
        what: What is not allowed.
        by: What does not allow it.
        advice: What to do.
    """

    code = "access"
    _template = "{1} does not allow {0}; nothing was done: {2}"

    def __init__(
        self, what: str, by: str = "this token", advice: str = "use another one (recollect serve --tokens)"
    ) -> None:
        super().__init__(what, by, advice)


class ResultChangedError(ServerError):
    """A result that is read in parts is another one than when its first part was read. Nothing was changed."""

    code = "result_changed"
    _template = "the result of {0} has changed since its first part; nothing was done: ask for the first part again"

    def __init__(self, name: str) -> None:
        super().__init__(name)


class AnswerTooLargeError(ServerError):
    """The result of a read is larger than an answer of a server may be. Nothing was changed.

    Args:
        name: The operation.
        size: The size of the result, in bytes.
        limit: How large it may be.
    """

    code = "answer_too_large"
    _template = (
        "the result of {0} has {1} bytes, and an answer may have {2}; nothing was changed: "
        "ask for less (limit, k, where), or for its parts one by one"
    )

    def __init__(self, name: str, size: int, limit: int) -> None:
        super().__init__(name, size, limit)


#: The reason of a ServerBusyError of a server that is stopping: another node of the same store can be asked at once.
STOPPING = "it is stopping"


class ServerBusyError(ServerError):
    """A server has too much to do, or is stopping. Nothing was done.

    Args:
        reason: Why the request was not executed.
        retry_after: Seconds after which another attempt may succeed.
    """

    code = "server_busy"
    _template = "the server did not execute this: {0}; nothing was done: try again in {1} s"

    def __init__(self, reason: str, retry_after: float) -> None:
        super().__init__(reason, retry_after)


class ServerVersionError(ServerError):
    """A server speaks another version of the protocol. Nothing was sent.

    Args:
        address: The address of the server.
        theirs: Its version of the protocol.
        ours: The version of this client.
    """

    code = "server_version"
    _template = (
        "the server at {0} speaks version {1} of the protocol, this client version {2}; nothing was sent: "
        "install the same release of recollect on both sides"
    )

    def __init__(self, address: str, theirs: object, ours: object) -> None:
        super().__init__(address, theirs, ours)


class StoreError(RecollectError):
    """The base of errors of the store: its file, disk or server."""

    code = "store"

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(path, detail)

    @property
    def _stated(self) -> tuple[Any, ...]:
        return without_passwords(str(self.args[0]), whole=True), *self.args[1:]

    @property
    def _named(self) -> dict[str, str]:
        return {"detail": f" ({self.args[1]})" if self.args[1] else "", "state": self._state}


class StoreMissingError(StoreError):
    """There is no store at this path, and the call must not create one."""

    code = "store_missing"

    def __str__(self) -> str:
        path, detail = self._stated
        if not detail:
            return f"nothing remembered yet: there is no store at {path}, and none was created"
        what = "address" if "://" in str(path) else "path"
        return f"there is no store at {path} ({detail}); none was created: check the {what}"


class NotAStoreError(StoreError):
    """The file is not a Recollect store."""

    code = "not_a_store"
    _template = "{0} is not a Recollect store{detail}; it was not changed: use another path"


class NewerFormatError(StoreError):
    """The store has a newer format, which this release must not open."""

    code = "newer_format"
    _template = "{0} was written by a newer Recollect{detail}; it was not changed: upgrade Recollect"


class OlderFormatError(StoreError):
    """The store has an older format, which this release no longer reads."""

    code = "older_format"
    _template = (
        "{0} was written by an older Recollect{detail}; it was not changed: "
        "run `recollect migrate` of a release that knows this format"
    )


class WrongKeyError(StoreError):
    """The store was created with another key."""

    code = "wrong_key"
    _template = "{0} was created with another key; it was not changed: open it with that key (key=..., --key-file)"


class SecretNeededError(StoreError):
    """The store is encrypted, and no secret was given."""

    code = "secret_needed"
    _template = "{0} is encrypted{detail}; nothing was read: give its secret (secret=..., --secret-file)"


class WrongSecretError(StoreError):
    """The store is encrypted, and the secret does not open it."""

    code = "wrong_secret"
    _template = "{0} does not open with this secret{detail}; nothing was read: give another one"


class KeyFileMissingError(StoreError):
    """The key file of an encrypted store is missing or corrupt. Without it, no secret opens the store."""

    code = "key_file_missing"
    _template = (
        "{0} is encrypted and has no usable key file{detail}; nothing was read: "
        "copy the key file back, from beside a backup (BACKUP.keys) or from `recollect key export`"
    )


class NotEncryptedError(StoreError):
    """A secret was given for a store that is not encrypted."""

    code = "not_encrypted"
    _template = (
        "{0} is not encrypted{detail}, so its secret was not used; nothing was read: "
        "run `recollect encrypt` on it, or open it without a secret"
    )


class DamagedStoreError(StoreError):
    """The store is corrupt."""

    code = "damaged_store"
    _template = "{0} is corrupt{detail}{state}: {advice}"

    @property
    def _named(self) -> dict[str, str]:
        advice = (
            "keep a copy of the file and its -wal; "
            "`recollect doctor --check` lists the damage, `recollect rescue` saves the intact records"
        )
        if "://" in str(self.args[0]):  # on a server
            advice = (
                "`recollect store check` lists the damage; "
                "restore the database from a backup, or `recollect copy` another store into a new schema"
            )
        return {**super()._named, "advice": advice}


class ReadOnlyStoreError(StoreError):
    """The store can be read but not written."""

    code = "read_only"
    _template = "{0} is read-only{detail}{state}: {advice}"

    @property
    def _named(self) -> dict[str, str]:
        advice = "open a copy that may be written"
        if "://" in str(self.args[0]):  # on a server
            advice = "to write, open it on the primary server, as a role that may write"
        return {**super()._named, "advice": advice}


class StoreBusyError(StoreError):
    """Another writer did not finish within the timeout."""

    code = "busy"
    _template = "{0} is locked by another writer{detail}{state}: try again"


class StoreFullError(StoreError):
    """The disk is full, or the store has reached its size limit."""

    code = "store_full"
    _template = "no room to write {0}{detail}{state}: free some space and try again"


class StoreReplacedError(StoreError):
    """The file of an open memory was deleted, moved or replaced."""

    code = "store_replaced"
    _template = (
        "{0} was deleted, moved or replaced while it was open{detail}; the file there now was not changed: close this "
        "memory and open it again, which creates a new store if there is no file"
    )


class StoreChangedError(StoreReplacedError):
    """Another process wrote to the store, which this one can only read as it was when it was opened."""

    code = "store_changed"
    _template = (
        "another process wrote to {0}, which cannot be shared with it, since this user cannot write to its "
        "folder{state}: close this memory and open it again"
    )


class NoMemoryError(StoreError, MemoryError):
    """There is not enough memory for the call."""

    code = "no_memory"
    _template = "not enough memory to work on {0}{detail}{state}: free some memory and try again"


class StoreIOError(StoreError):
    """The operating system refused to read or write."""

    code = "store_io"
    _template = "cannot read or write {0}{detail}{state}: check the disk and try again"


class CommitInDoubtError(StoreIOError):
    """The outcome of a commit is unknown: it failed or was interrupted, and the result could not be verified."""

    code = "commit_in_doubt"
    _template = (
        "a commit to {0} could not be completed{detail}; it may or may not be stored: "
        "close the memory, open it again, and read before you repeat the write"
    )


class StoreServerError(StoreError):
    """The server of a store cannot be reached, or refused what it was asked. The message never contains an API key."""

    code = "store_server"
    _template = (
        "the server at {0} cannot be reached or refused{detail}{state}: "
        "check that it runs, its address, and the password or key; then try again"
    )


class StaleReadError(StoreError):
    """A store lacks a commit that the caller has seen. Nothing was read."""

    code = "stale_read"
    _template = (
        "{0} is older than what was seen before{detail}; nothing was read. If a failover has lost commits, connect or "
        "open again to read what there is"
    )


class StoreRefusedError(StoreError):
    """The server of a store answers, and its database or a role of it cannot be used for this: a right is missing."""

    code = "store_refused"
    _template = "{0} cannot be used for this{detail}{state}: have the owner of the database change that"
