"""The policies of a namespace: what every text must obey, whichever process writes it.

They are read inside the transaction of each write. `write.admission` applies them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from recollect.arguments.json_form import JsonForm
from recollect.engine.settings import read_setting, write_setting
from recollect.ledger.commits import Branch
from recollect.operations import Redaction, SetPolicies
from recollect.redaction import CATEGORIES
from recollect.salience import Level
from recollect.stores.base import ReadView, Transaction

_NAME = "policies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies(JsonForm, what="policies"):
    """The policies of a namespace.

    Attributes:
        redaction: What happens to a text that contains something of `categories`, in its content or its metadata.
            "keep": it is stored as it is. "redact": it is stored with asterisks instead. "refuse": it is rejected.
        categories: See `recollect.redaction.redact`.
        salience: How strictly the content of a record is judged. What is not worth remembering is rejected: see
            `recollect.salience.judge`.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    redaction: Redaction = "keep"
    categories: tuple[str, ...] = CATEGORIES
    salience: Level = "off"

    def __post_init__(self) -> None:
        checked = SetPolicies(redaction=self.redaction, categories=self.categories, salience=self.salience)
        object.__setattr__(self, "categories", checked.categories)


#: The policies of a namespace that has set none.
NONE = Policies()


def policies_of(view: ReadView, branch: Branch) -> Policies:
    """Return the policies of a branch's namespace, or of the one that this belongs to.

    What is kept beside its records, such as the terms of a glossary, is not judged by its salience.

    Raises:
        DamagedStoreError: The stored policies are invalid.
    """
    found: Policies | None = read_setting(view, branch, _NAME, Policies)
    policies = NONE if found is None else found
    return replace(policies, salience="off") if branch.is_reserved else policies


def set_policies(transaction: Transaction, branch: Branch, policies: Policies) -> None:
    """Store policies; the default ones remove the setting."""
    write_setting(transaction, branch, _NAME, None if policies == NONE else policies.to_json())
