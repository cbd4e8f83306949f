"""Commands of proofs: prove, verify."""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

import click

from recollect.cli.app import Settings, app, common, print_json
from recollect.errors import InvalidArgumentError
from recollect.ledger.proofs import ABSENCE, CONSISTENCY, PRESENCE
from recollect.ledger.verifying import verify as verify_proof

_STATED = {
    PRESENCE: "the record is present in the version of the proof",
    ABSENCE: "no record has the id of the proof",
    CONSISTENCY: "the newer log begins with the older one",
}


@app.command()
@click.argument("id")
@click.option("--at", type=int, metavar="SEQ", help="Prove it for the state after this commit. Default: the newest.")
@common
def prove(settings: Settings, id: str, at: int | None) -> None:  # noqa: A002 - the field's name
    """Print a proof that the record ID is present, or that the id is absent, as JSON.

    ID is the whole id. The proof of a record contains the record in full.
    """
    with settings.open() as memory:
        print_json(memory.prove(id, at=at))


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

    The exit code is 0 if it is proved, and 1 if it is not.
    """
    try:
        value = json.loads(proof.read(), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError("proof", getattr(proof, "name", "-"), f"must be JSON: {error}") from None
    proved = verify_proof(value, roots if len(roots) > 1 else roots[0])
    if settings.as_json:
        print_json({"proved": proved})
    elif proved:
        click.echo(f"proved: {_STATED[value['proof']]}")
    else:
        click.echo("not proved", err=True)
    if not proved:
        sys.exit(1)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raise ValueError if a key occurs twice: readers differ in which one they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice in an object")
    return found
