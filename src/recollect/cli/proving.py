"""Commands of proofs and receipts: prove, verify, replay."""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

import click

from recollect.cli.app import Settings, app, at_option, common, completion, print_json
from recollect.common.reprs import line
from recollect.errors import InvalidArgumentError
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.ledger.parts import RECORDS
from recollect.ledger.proofs import ABSENCE, ABSENCE_2, CONSISTENCY
from recollect.ledger.verifying import verify as verify_proof
from recollect.records.record import Record

#: Status of a replay -> what is printed.
_FOUND = {
    "same": "same: the store gives the same answer",
    "different": "different: receipt -> store",
    "rules changed": "rules changed: another version computes the scores; receipt -> store",
}


@app.command()
@click.argument("id", required=False, shell_complete=completion("ids"))
@click.option("--log", "old", type=int, metavar="SEQ", help="Prove instead that the log only grew since this commit.")
@at_option
@common
def prove(settings: Settings, id: str | None, old: int | None, at: str | None) -> None:  # noqa: A002
    """Print a proof that the record ID is present, or that the id is absent, as JSON.

    ID is the whole id. The proof of a record contains the record in full.
    """
    if (id is None) == (old is None) or (old is not None and at is not None):
        raise click.UsageError("pass either an ID, also with --at, or --log SEQ")
    with settings.open_at(at) as memory:
        print_json(memory.prove(id) if id is not None else memory.prove_log(old or 0))


@app.command()
@click.argument("proof", type=click.File("rb"))
@click.option(
    "--root",
    "roots",
    required=True,
    multiple=True,
    metavar="HEX",
    help="The root or the head of the log that you trust. For consistency also twice: the old and the new head.",
)
@common
def verify(settings: Settings, proof: BinaryIO, roots: tuple[str, ...]) -> None:
    """Verify the proof in the file PROOF (- for stdin) without a store.

    The file can have several proofs, such as those of an erasure from the inspector: then each must be proved. The exit
    code is 0 if it is proved, and 1 if it is not.
    """
    proofs = _proofs(_read("proof", proof))
    trusted = roots if len(roots) > 1 else roots[0]
    found = [verify_proof(each, trusted) for each in proofs]
    proved = bool(found) and all(found)
    if settings.as_json:
        print_json({"proved": proved})
    else:
        for each, is_proved in zip(proofs, found, strict=True):
            click.echo(f"proved: {_stated(each)}" if is_proved else "not proved", err=not is_proved)
        if not proofs:
            click.echo("not proved: the file has no proof", err=True)
    if not proved:
        sys.exit(1)


def _proofs(value: Any) -> list[Any]:
    """Return the proofs of a file: one, or those of the JSON of the inspector's page about an erasure."""
    match value:
        case {"proofs": list(items)}:
            return [each.get("proof") if isinstance(each, dict) else each for each in items]
    return [value]


def _stated(proof: dict[str, Any]) -> str:
    """Return what a proof states, with the beginning of the record."""
    if proof["proof"] == CONSISTENCY:
        return f"the log of {proof['new']['size']} commits begins with that of {proof['old']['size']}"
    part = proof.get("part", RECORDS)
    where = "" if part == RECORDS else f" in {line(part, 100)}"
    named = f"record with the id {line(proof['id'], 100)!r}{where}"
    if proof["proof"] in (ABSENCE, ABSENCE_2):
        return f"there is no {named}"
    if "payload" not in proof:
        return f"there is a {named}, whose contents were erased"
    record = Record.load(bytes.fromhex(proof["payload"]))
    return f"there is a {named}: {line(record.content, 200)}"


@app.command()
@click.argument("receipt", type=click.File("rb"))
@common
def replay(settings: Settings, receipt: BinaryIO) -> None:
    """Ask the question of the receipt in the file RECEIPT (- for stdin) again, and compare the answers.

    The store may be a copy of the one that answered, such as a restored backup. The exit code is 0 if the answer is the
    same, 1 if it is different or the rules of the scores have changed, and 2 for errors.
    """
    settings.error_code = 2
    value = _read("receipt", receipt)
    with settings.open() as memory:
        replayed = memory.replay(value)
    if settings.as_json:
        print_json(replayed.to_json())
    else:
        click.echo(_FOUND[replayed.status])
        for each in replayed.deviations:
            rank = "" if each.rank is None else f" {each.rank + 1}"
            reason = f" ({each.reason})" if each.reason else ""
            click.echo(f"  {each.what}{rank}: {_described(each.receipt)} -> {_described(each.store)}{reason}")
    if not replayed:
        sys.exit(1)


def _described(value: Any) -> str:
    """Return what a receipt or the store has, on one line."""
    match value:
        case None:
            return "none"
        case {"id": str(record_id), "version": str(version), "score": int(score)}:
            return f"{line(record_id, 40)} version {version[:8]} score {score / (1 << SHARE_BITS):.6f}"
    return line(str(value), 100)


def _read(name: str, file: BinaryIO) -> Any:
    """Return the JSON value of a file.

    Raises:
        InvalidArgumentError: It is not JSON.
    """
    try:
        return json.loads(file.read(), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(name, getattr(file, "name", "-"), f"must be JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raise ValueError if a key occurs twice: readers differ in which one they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice in an object")
    return found
