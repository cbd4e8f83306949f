"""What people change on the pages: each an ordinary operation, with what it expects, an actor and a reason.

An action reads the fields of a form and returns the page to show next. The commit that it made is named there, with a
button that takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from recollect import Memory, Outcome, Record
from recollect.errors import ConflictError, InvalidArgumentError, UnknownRecordError
from recollect.operations import GetPolicies, GetQuota, Update
from recollect.operations.base import all_operations
from recollect.operations.trust import Endorse
from recollect.server.ui.pages import PAGES
from recollect.server.ui.pages.erase import options, phrase, preview, selected
from recollect.server.ui.pages.records import FACETS, condition, digest
from recollect.server.ui.visit import MADE, SIGNATURE, Visit

#: The reason of a change for which people state none.
_REASONS = {
    "update": "corrected",
    "restore": "restored",
    "forget": "forgotten",
    "forget_where": "forgotten by a filter",
    "supersede": "replaced",
    "merge": "merged",
    "resolve": "contradiction resolved",
    "distinguish": "not the same",
    "merge_entities": "the same entity",
    "endorse": "endorsed",
    "release": "released from quarantine",
    "revert": "undone",
    "rollback": "rolled back",
    "erase": "erased",
}
#: Number of the ids of a change by which its commit is found.
_IDS = 100
#: Maximum number of ids that the page after an erasure names, where no commit does.
_NAMED = 50


class Done(NamedTuple):
    """The result of an action: the page to show next, and the commit to look for.

    Attributes:
        page: The page to show.
        parameters: Its parameters.
        of: The id of a record that it is about, for the message.
        ids: Ids of records that it changed.
        seq: The number of its commit, if that is known.
        has_commit: Whether a commit is looked for, which can be taken back.
        what: The name of the message; default: that of the action.
    """

    page: str
    parameters: Mapping[str, str]
    of: str = ""
    ids: tuple[str, ...] = ()
    seq: int | None = None
    has_commit: bool = True
    what: str = ""


class Action(NamedTuple):
    """Something that people can do.

    Attributes:
        operation: The operation that decides about the right to do it.
        change: Makes the change.
        of_owner: Whether users may do it who may change only what is theirs.
        page: The page of its form.
        is_whole: Whether it is about the namespace, also on a page that is about one person.
    """

    operation: str
    change: Callable[[Visit, Memory], Done]
    of_owner: bool = False
    page: str = "record"
    is_whole: bool = False


def act(visit: Visit, name: str) -> str:
    """Do what a form asks for, and return the address of the page that shows it, below that of all pages.

    Raises:
        InvalidArgumentError: There is no such action.
        AccessError: The client may not do that.
        RecollectError: What the operation raises. Nothing was changed.
    """
    action = ACTIONS.get(name)
    if action is None:
        raise InvalidArgumentError("action", name, f"must be one of {', '.join(ACTIONS)}")
    reason = " ".join(visit.text("reason").split()) or _REASONS.get(name, name)
    memory = visit.writing(all_operations()[action.operation].right, reason, whole=action.is_whole)
    since = visit.head() if name in _REASONS else None
    done = action.change(visit, memory)
    seq = done.seq
    if seq is None and done.has_commit:
        seq = visit.committed(since, reason, done.ids)
    said = {"done": done.what or name, "of": done.of, "seq": "" if seq is None else str(seq)}
    said |= {key: value for key, value in done.parameters.items() if key in MADE}
    known = PAGES[done.page].takes.split()
    parameters = {**visit.kept, **{key: value for key, value in done.parameters.items() if key in known}}
    signed = {**parameters, **said, SIGNATURE: visit.signature(done.page, parameters, said)}
    return f"{done.page}?{urlencode({key: value for key, value in signed.items() if value})}"


def _record_page(visit: Visit) -> Done:
    page = "mine" if visit.text("page") == "mine" else "record"
    return Done(page, visit.given("id", "part"), ids=(visit.text("id"),))


def _update(visit: Visit, memory: Memory) -> Done:
    memory = visit.part(memory)
    old = _read(visit, memory)
    changes: dict[str, Any] = {}
    if "content" in visit.query and isinstance(old.content, str):
        changes["content"] = _as_before(visit.text("content"), old.content)
    if "tags" in visit.query:
        changes["tags"] = [each for each in map(str.strip, visit.text("tags").split("\n")) if each] or None
    if "importance" in visit.query:
        changes["importance"] = _share(visit, "importance")
    if "pinned" in visit.query:
        changes["pinned"] = visit.flag("pinned") or None
    done = memory.execute(Update(id=old.id, changes=changes, expect=visit.text("expect") or None))
    return _changed(visit, old, done)


def _changed(visit: Visit, old: Record, outcome: Outcome, what: str = "") -> Done:
    """Return what a change of one record did: perhaps nothing."""
    done, new = _record_page(visit), outcome.record
    if outcome.status in ("proposed", "quarantined"):  # by a visitor of a lower class of origin than the record
        return done._replace(has_commit=False, what=outcome.status)
    if new is None or old.hash == new.hash:
        return done._replace(has_commit=False, what="unchanged")
    return done._replace(parameters={**done.parameters, "hash": new.hash}, what=what)


def _read(visit: Visit, memory: Memory) -> Record:
    """Return the record that a form is about.

    Raises:
        UnknownRecordError: There is none.
    """
    found = memory.get(visit.text("id"))
    if found is None:
        raise UnknownRecordError(visit.text("id"), visit.namespace)
    return found


def _restore(visit: Visit, memory: Memory) -> Done:
    """Give a record the text of one of its versions, as it was: no form could have every text."""
    memory = visit.part(memory)
    versions = memory.history(visit.text("id"))
    version = versions[visit.number("v", 1, max(len(versions), 1)) - 1].record if versions else None
    if version is None:
        raise UnknownRecordError(visit.text("id"), visit.namespace)
    old = _read(visit, memory)
    changes = {"content": version.content}
    done = memory.execute(Update(id=version.id, changes=changes, expect=visit.text("expect") or None))
    return _changed(visit, old, done, "restore")


def _as_before(text: str, old: str) -> str:
    """Return the text of a form, or the text of the record if that is what the form had shown.

    Browsers read every end of a line as a line feed, and show no NUL.
    """
    if text == _in_form(old):
        return old
    if "\r\n" in old and "\n" not in old.replace("\r\n", ""):
        return text.replace("\n", "\r\n")
    return text


def _in_form(text: str) -> str:
    """Return a text as a browser sends it back from a form."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _share(visit: Visit, name: str) -> float | None:
    """Return a field that is a share, 0 to 1; None if it is empty. German readers write a comma."""
    stated = visit.text(name).strip()
    try:
        return float(stated.replace(",", ".")) if stated else None
    except ValueError:
        raise InvalidArgumentError(name, stated, "must be a number from 0 to 1") from None


def _forget(visit: Visit, memory: Memory) -> Done:
    is_new = visit.part(memory).forget(visit.text("id"), expect=visit.text("expect") or None)
    ids = (visit.text("id"),) if is_new else ()
    if visit.text("page") == "mine":
        return Done("me", {}, ids=ids)
    if visit.text("page") == "review":
        return Done("review", visit.given("n"), visit.text("id"), ids)
    return _record_page(visit)


def _forget_where(visit: Visit, memory: Memory) -> Done:
    memory = visit.part(memory)
    found = memory.find(condition(visit), order="id")
    if digest(found) != visit.text("expect"):
        raise ConflictError("what matches", "as it was shown", "changed meanwhile")
    ids = tuple(each.id for each in found)
    memory.forget_all(ids)
    what = "" if ids else "unchanged"
    return Done("records", visit.given(*FACETS, "where", "contains", "part"), ids=ids[:_IDS], what=what)


def _supersede(visit: Visit, memory: Memory) -> Done:
    with memory.batch() as batch:
        old = batch.get(visit.text("id"))
        if old is None:
            raise UnknownRecordError(visit.text("id"), visit.namespace)
        if visit.text("expect") and old.hash != visit.text("expect"):
            raise ConflictError(f"record {old.id!r}", visit.text("expect"), old.hash)
        made = batch.supersede(old.id, visit.text("content"), at=visit.text("since").strip() or None)
    return Done("record", {"id": made.id}, ids=(made.id, old.id))


def _as_shown(visit: Visit, memory: Memory) -> list[Record]:
    """Return the records that a case of the review had shown.

    Raises:
        UnknownRecordError: One of them is not there any more.
        ConflictError: One of them was changed.
    """
    ids, hashes = visit.text("ids").split("\n"), visit.text("hashes").split("\n")
    found = []
    for record_id, expected, record in zip(ids, hashes, memory.get_all(ids), strict=True):
        if record is None:
            raise UnknownRecordError(record_id, visit.namespace)
        if record.hash != expected:
            raise ConflictError(f"record {record_id!r}", expected, record.hash)
        found.append(record)
    return found


def _merge(visit: Visit, memory: Memory) -> Done:
    made = memory.merge(_as_shown(visit, memory), visit.text("content"))
    return Done("review", visit.given("n"), made.id, (made.id,))


def _resolve(visit: Visit, memory: Memory) -> Done:
    wanted = (visit.text("older"), visit.text("newer"), visit.text("hashes"))
    for found in memory.contradictions():
        if (found.older.id, found.newer.id, f"{found.older.hash}\n{found.newer.hash}") == wanted:
            memory.resolve(found)
            return Done("review", visit.given("n"), found.newer.id, (found.older.id, found.newer.id))
    raise ConflictError("the contradiction", "as it was shown", "changed meanwhile")


def _distinguish(visit: Visit, memory: Memory) -> Done:
    shown = _as_shown(visit, memory)
    stated = memory.distinguish(shown)
    return Done("review", visit.given("n"), shown[0].id, (stated.id,))


def _release(visit: Visit, memory: Memory) -> Done:
    (done,) = memory.quarantine.release(visit.text("id")).results
    return Done("review", visit.given("n"), ids=() if done.record is None else (done.record.id,))


def _reject(visit: Visit, memory: Memory) -> Done:
    if not memory.quarantine.reject([visit.text("id")], reason=" ".join(visit.text("reason").split()) or None):
        raise UnknownRecordError(visit.text("id"), visit.namespace)
    return Done("review", visit.given("n"), has_commit=False)


def _endorse(visit: Visit, memory: Memory) -> Done:
    with memory.batch() as batch:
        old = batch.get(visit.text("id"))
        if old is None:
            raise UnknownRecordError(visit.text("id"), visit.namespace)
        if old.hash != visit.text("expect"):
            raise ConflictError(f"record {old.id!r}", visit.text("expect"), old.hash)
        done = batch.execute(Endorse(id=old.id))
    changed = _changed(visit, old, done)
    return changed._replace(page="review", parameters=visit.given("n")) if visit.text("page") == "review" else changed


def _merge_entities(visit: Visit, memory: Memory) -> Done:
    made = memory.merge_entities(visit.text("alias"), visit.text("into"))
    return Done("entity", {"id": str(made.metadata["to"])}, ids=(made.id,))


def _revert(visit: Visit, memory: Memory) -> Done:
    restored = memory.revert(visit.number("seq", 0, 10**15))
    changed = restored.changed + sum(each.changed for each in restored.parts.values())
    conflicts = {"conflicts": str(len(restored.conflicts))} if restored.conflicts else {}
    page = visit.text("page")
    return Done(
        page if page in _BACK else "log",
        {**visit.given("id", "part", "n"), **conflicts},
        seq=restored.seq if changed else None,
        has_commit=False,
        what="" if changed else "nothing",
    )


#: The pages to which taking something back returns.
_BACK = ("record", "mine", "me", "records", "review", "entity", "log", "diff")


def _rollback(visit: Visit, memory: Memory) -> Done:
    head = visit.head()
    if str(head) != visit.text("expect"):
        raise ConflictError("the newest commit", visit.text("expect"), str(head))
    restored = memory.rollback(visit.number("to", 0, 10**15, least=0))
    return Done("log", {}, seq=restored.seq, has_commit=False)


def _erase(visit: Visit, memory: Memory) -> Done:
    what = selected(visit)
    if what is None:
        raise InvalidArgumentError("erase", "", "name an id, a user or a filter")
    would = memory.erase(what, dry_run=True, **options(visit))
    if preview(would) != visit.text("expect"):
        raise ConflictError("what would be erased", "as it was shown", "changed meanwhile")
    wanted = phrase(visit, len(would.ids) + sum(would.parts.values()))
    if visit.text("confirm") != wanted:
        raise InvalidArgumentError("confirm", visit.text("confirm"), f"must be {wanted!r}; nothing was erased")
    erased = memory.erase(what, **options(visit))
    commits = ",".join(map(str, erased.commits))
    by_commit = bool(commits) and visit.is_whole and not visit.flag("redact") and not visit.text("part")
    shown = {
        "part": visit.text("part"),
        "id": "" if by_commit else "\n".join(erased.ids[:_NAMED]),
        "versions": str(erased.versions),
        "commit": commits if by_commit else "",
        "copies": "\n".join(erased.copies),
        "pending": "1" if erased.pending else "",
    }
    return Done("erased", shown, has_commit=False)


def _set_quota(visit: Visit, memory: Memory) -> Done:
    was = memory.execute(GetQuota())
    limits: dict[str, Any] = {name: visit.number(name, 0, 10**15, least=0) or None for name in ("records", "bytes")}
    full: Any = visit.text("when_full") or "refuse"
    per: Any = visit.text("per") or None
    if any(limits.values()):
        memory.set_quota(**limits, when_full=full, per=per, low_water=_share(visit, "low_water") or 1.0)
    else:
        memory.set_quota()
    old = {} if was is None else {name: str(value) for name, value in was.to_json().items() if value is not None}
    return Done("settings", {"was": urlencode(old) or "records="}, has_commit=False)


def _set_policies(visit: Visit, memory: Memory) -> Done:
    was = memory.execute(GetPolicies())
    redaction: Any = visit.text("redaction") or "keep"
    salience: Any = visit.text("salience") or "off"
    categories = [each for each in visit.text("categories").split("\n") if each]
    others: dict[str, Any] = {name: getattr(was, name) for name in ("origins", "flagged", "record_origins")}
    memory.set_policies(redaction=redaction, categories=categories, salience=salience, **others)
    old = {"redaction": was.redaction, "salience": was.salience, "categories": "\n".join(was.categories)}
    return Done("settings", {"was": urlencode(old)}, has_commit=False)


ACTIONS: dict[str, Action] = {
    "update": Action("update", _update, of_owner=True),
    "restore": Action("update", _restore, of_owner=True),
    "forget": Action("forget", _forget, of_owner=True),
    "forget_where": Action("forget_where", _forget_where, page="forget"),
    "supersede": Action("supersede", _supersede),
    "merge": Action("merge", _merge, page="review"),
    "resolve": Action("supersede", _resolve, page="review"),
    "distinguish": Action("remember", _distinguish, page="review"),
    "endorse": Action("endorse", _endorse),
    "release": Action("release", _release, page="review"),
    "reject": Action("forget", _reject, page="review"),
    "merge_entities": Action("remember", _merge_entities, page="entities"),
    "revert": Action("revert", _revert, page="log", is_whole=True),
    "rollback": Action("rollback", _rollback, page="log"),
    "erase": Action("erase", _erase, of_owner=True, page="erase"),
    "set_quota": Action("set_quota", _set_quota, page="settings"),
    "set_policies": Action("set_policies", _set_policies, page="settings"),
}
