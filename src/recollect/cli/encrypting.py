"""The commands of encryption at rest: encrypt, decrypt, and key with its subcommands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json, typed
from recollect.errors import InvalidArgumentError
from recollect.memory.opening import store_file
from recollect.stores.maintenance.encrypting import Rewritten
from recollect.stores.maintenance.encrypting import decrypt as decrypt_store
from recollect.stores.maintenance.encrypting import encrypt as encrypt_store
from recollect.stores.maintenance.keys import StoreKeys
from recollect.stores.sealing.keys import Secret
from recollect.stores.sealing.secrets import SECRET_VARIABLE, secret_in

_FILE = click.Path(path_type=Path)
_new_secret = click.option(
    "--new-secret-file",
    "new",
    metavar="FILE",
    type=_FILE,
    help="File with the new passphrase or key. Default: the terminal asks for a passphrase.",
)
_name = click.option("--name", metavar="NAME", help="Name of the new slot. Default: slot-N.")


def _new_of_store(settings: Settings) -> Secret | None:
    """Return the secret that a store gets: that of the settings, or a passphrase that the user types twice."""
    if settings.secret is not None or os.environ.get(SECRET_VARIABLE) or not sys.stdin.isatty():
        return settings.secret
    return typed("New passphrase", new=True)


def _new(path: Path | None) -> Secret:
    """Return a new secret: that of a file, or a passphrase that the user types twice."""
    if path is not None:
        return secret_in(path)
    if not sys.stdin.isatty():
        raise InvalidArgumentError("--new-secret-file", "missing", "is needed where there is no terminal")
    return typed("New passphrase", new=True)


def _print(settings: Settings, done: Rewritten, what: str) -> None:
    if settings.as_json:
        print_json(done.to_json())
        return
    click.echo(f"{done.path}: {what}, {done.bytes} bytes, every root verified")
    click.echo(f"the former file was renamed to {done.kept}: delete it when you no longer need it")


@app.command()
@common
def encrypt(settings: Settings) -> None:
    """Encrypt the store and its index files. Copies of it, such as backups, stay as they are.

    The key file FILE.keys is written beside it: keep a copy of it elsewhere (`recollect key export`).
    """
    secret = _new_of_store(settings)
    with render.progress("encrypting", quiet=settings.as_json):
        done = encrypt_store(store_file(settings.db), secret=secret, key=settings.key)
    _print(settings, done, "encrypted")
    if not settings.as_json:
        click.echo("that file, and all other copies of the store, can be read without a secret")


@app.command()
@common
def decrypt(settings: Settings) -> None:
    """Write the store without encryption."""
    secret = settings.secret_of(store_file(settings.db))
    with render.progress("decrypting", quiet=settings.as_json):
        done = decrypt_store(store_file(settings.db), secret=secret, key=settings.key)
    _print(settings, done, "decrypted")
    if done.store_key is not None and not settings.as_json:
        click.echo(f"open it with --key-file {done.store_key}: the hashes of its records depend on that key")


@app.group()
def key() -> None:
    """List and change the secrets that open an encrypted store."""


@key.command("list")
@common
def list_(settings: Settings) -> None:
    """List the slots of the key file: each is a secret that opens the store."""
    keys = StoreKeys(store_file(settings.db))
    if settings.as_json:
        print_json({"key_file": keys.file, "slots": [{"name": each.id, "kind": each.kind} for each in keys.slots]})
        return
    for each in keys.slots:
        click.echo(f"{render.plain(each.id)}  {each.kind}")


@key.command()
@_new_secret
@_name
@common
def add(settings: Settings, new: Path | None, name: str | None) -> None:
    """Let another secret open the store, too."""
    keys = StoreKeys(store_file(settings.db))
    secret = settings.secret_of(store_file(settings.db))
    slot = keys.add(_new(new), secret=secret, name=name)
    _print_slot(settings, slot.id, "added")


@key.command()
@click.argument("name")
@common
def remove(settings: Settings, name: str) -> None:
    """Let the secret of the slot NAME open the store no longer. Copies of the key file keep it."""
    StoreKeys(store_file(settings.db)).remove(name)
    _print_slot(settings, name, "removed")


@key.command()
@_new_secret
@_name
@click.option("--rewrite", is_flag=True, help="Replace the data key, too, and encrypt the store again.")
@common
def rotate(settings: Settings, new: Path | None, name: str | None, rewrite: bool) -> None:
    """Replace the secret that is given by a new one.

    Without --rewrite, nothing of the store is written again. With it, the slots of all other secrets are removed, and
    no other process may have the store open.
    """
    keys = StoreKeys(store_file(settings.db))
    secret = settings.secret_of(store_file(settings.db))
    given = _new(new)
    done = None
    if rewrite:
        with render.progress("encrypting", quiet=settings.as_json):
            done = keys.rewrite(secret=secret, key=settings.key)
    slot = keys.rotate(given, secret=secret, name=name)
    if done is None:
        _print_slot(settings, slot.id, "added; the secret that it replaces was removed")
    else:
        _print(settings, done, "encrypted with a new data key")


@key.command()
@click.argument("path", type=_FILE)
@common
def export(settings: Settings, path: Path) -> None:
    """Copy the key file to PATH, to keep it elsewhere. Without a secret it opens nothing."""
    written = StoreKeys(store_file(settings.db)).export(path)
    if settings.as_json:
        print_json({"path": written})
    else:
        click.echo(f"{written}: the key file of {store_file(settings.db)}")


@key.command()
@click.option(
    "--copies", is_flag=True, help="Also all other key files of the store in its folder, whatever their names."
)
@click.option("--yes", is_flag=True, help="Do it, without a question.")
@common
def destroy(settings: Settings, copies: bool, yes: bool) -> None:
    """Delete the key file: no secret opens the store any more."""
    keys = StoreKeys(store_file(settings.db))
    others = keys.copies()
    named = ", ".join([keys.file, *(others if copies else ())])
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidArgumentError("--yes", "missing", f"is needed to delete {named}")
        click.confirm(f"This deletes {named}, and no secret opens what they opened. Continue?", abort=True, err=True)
    gone = keys.destroy(copies=copies)
    if settings.as_json:
        print_json({"deleted": list(gone), "left": [each for each in others if each not in gone]})
        return
    for each in gone:
        click.echo(f"deleted {each}")
    for each in others:
        if each not in gone:
            click.echo(f"still there: {each}")
    click.echo("key files in other folders, and those in sealed exports, still open what they belong to")


def _print_slot(settings: Settings, name: str, what: str) -> None:
    if settings.as_json:
        print_json({"slot": name})
    else:
        click.echo(f"slot {render.plain(name)}: {what}")
