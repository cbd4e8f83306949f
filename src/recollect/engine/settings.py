"""Settings of a namespace that the store keeps outside the ledger, and that apply to every process: JSON under a name.

A reserved namespace has the settings of its owner, but those that are its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from recollect.errors import DamagedStoreError, RecollectError
from recollect.ledger.commits import Branch
from recollect.stores.base import ReadView, Transaction


def _key(name: str, branch: Branch, own: bool) -> str:
    return f"{name}/{branch.namespace if own else branch.owner.namespace}"


def read_setting(view: ReadView, branch: Branch, name: str, build: type[Any], *, own: bool = False) -> Any:
    """Return a setting, built from its fields; None if it is not set.

    Args:
        view: A view of the store.
        branch: The branch.
        name: The name of the setting.
        build: Builds it.
        own: Whether it is that of a reserved namespace alone.

    Raises:
        DamagedStoreError: What is stored is invalid.
    """
    text = view.setting(_key(name, branch, own))
    if text is None:
        return None
    try:
        return build(**json.loads(text))
    except (ValueError, TypeError, RecollectError) as error:
        raise DamagedStoreError("the store", f"the {name} of {branch.namespace!r} cannot be read: {error}") from None


def write_setting(
    transaction: Transaction, branch: Branch, name: str, fields: Mapping[str, Any] | None, *, own: bool = False
) -> None:
    """Store the fields of a setting; None removes it. See `read_setting`."""
    transaction.set_setting(_key(name, branch, own), None if fields is None else json.dumps(fields))
