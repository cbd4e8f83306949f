"""Settings of a namespace that the store keeps outside the ledger, and that apply to every process: JSON under a name.

A reserved namespace has the settings of its owner.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from recollect.errors import DamagedStoreError, RecollectError
from recollect.ledger.commits import Branch
from recollect.stores.base import ReadView, Transaction


def _key(name: str, branch: Branch) -> str:
    return f"{name}/{branch.owner.namespace}"


def read_setting(view: ReadView, branch: Branch, name: str, build: type[Any]) -> Any:
    """Return a setting, built from its fields; None if it is not set.

    Raises:
        DamagedStoreError: What is stored is invalid.
    """
    text = view.setting(_key(name, branch))
    if text is None:
        return None
    try:
        return build(**json.loads(text))
    except (ValueError, TypeError, RecollectError) as error:
        raise DamagedStoreError("the store", f"the {name} of {branch.namespace!r} cannot be read: {error}") from None


def write_setting(transaction: Transaction, branch: Branch, name: str, fields: Mapping[str, Any] | None) -> None:
    """Store the fields of a setting; None removes it."""
    transaction.set_setting(_key(name, branch), None if fields is None else json.dumps(fields))
