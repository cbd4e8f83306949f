"""Names in the columns of heads that a release before format 4 stored in another Unicode form than NFC.

Such a name is read as the composed one (`records.names`), so the columns of the file cannot be compared with it. The
migration to format 4 composes the columns; the versions keep their bytes, which their hashes cover.
"""

from __future__ import annotations

from typing import Any

import apsw

from recollect.records.names import NAMES
from recollect.stores.sql.columns import COPIED
from recollect.text.unicode import nfc

_COLUMNS = tuple(name for name in COPIED if name in NAMES)
_ALL = " || ".join(f"ifnull(\"{name}\", '')" for name in _COLUMNS)
#: A text has more bytes than characters if it is not ASCII. SQLite finds these rows alone.
_NOT_ASCII = (
    "SELECT number, " + ", ".join(f'"{name}"' for name in _COLUMNS) + " FROM heads "
    f"WHERE length({_ALL}) <> length(CAST({_ALL} AS BLOB))"
)


def uncomposed_heads(connection: apsw.Connection) -> dict[int, dict[str, str]]:
    """Return the composed names of the heads that have others, by the number of the head and the column.

    Cost:
        O(heads).
    """
    out = {}
    for number, *values in connection.execute(_NOT_ASCII):
        changed = {
            name: nfc(value)
            for name, value in zip(_COLUMNS, values, strict=True)
            if isinstance(value, str) and nfc(value) != value
        }
        if changed:
            out[number] = changed
    return out


def compose_heads(connection: apsw.Connection) -> None:
    """Write the composed names into the columns of the heads, within a transaction."""
    for number, changed in uncomposed_heads(connection).items():
        columns = ", ".join(f'"{name}" = ?' for name in changed)
        parameters: tuple[Any, ...] = (*changed.values(), number)
        connection.execute(f"UPDATE heads SET {columns} WHERE number = ?", parameters)
