"""The address of a PostgreSQL store: what is ours in it, what is libpq's, and how messages show it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError, StoreIOError

#: The schemes of addresses, before "://".
SCHEMES = ("postgresql", "postgres")
#: The environment variable with the path of a file that contains the password.
PASSWORD_FILE_VARIABLE = "RECOLLECT_DB_PASSWORD_FILE"
_NAME = regex("[a-z_][a-z0-9_]{0,62}")
_MOST_CONNECTIONS, _MOST_CLOCK_S = 1000, 86_400
#: The parameters that are not libpq's.
_OWN = ("schema", "pool", "pgbouncer", "cache", "replicated", "clock")
#: Parameters of libpq that are secrets.
_SECRET = frozenset(("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"))
#: Parameters of libpq that are set unless the address has them: a connection that the network has dropped is noticed.
_DEFAULTS = {
    "application_name": "recollect",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


@dataclass(frozen=True)
class Address:
    """An address, taken apart.

    Attributes:
        conninfo: The address for libpq, with the password.
        shown: The address without secrets, for messages.
        schema: The schema of the store's tables.
        pool: Maximum number of connections.
        pgbouncer: Whether a pooler gives each transaction another connection, so that no statement stays prepared.
        cache: The folder of what is derived from the store; None for that of the user.
        replicated: Whether writes are refused while no standby must confirm a commit.
        clock_s: By how many seconds the clocks of the server and of this machine may differ for writes to be allowed.
    """

    conninfo: str
    shown: str
    schema: str = "recollect"
    pool: int = min(8, 2 * (os.cpu_count() or 1))
    pgbouncer: bool = False
    cache: str | None = None
    replicated: bool = False
    clock_s: int = 60


def parsed(address: str) -> Address:
    """Take an address apart: postgresql://USER@HOST/DATABASE?schema=NAME&pool=N and so on (`Address`).

    All other parameters are libpq's.

    >>> parsed("postgresql://ana:secret@db/memories?schema=team").shown
    'postgresql://ana@db/memories?schema=team'

    Raises:
        InvalidArgumentError: A parameter of ours is invalid, or appears twice.
        StoreIOError: The file with the password cannot be read.
    """
    _check_encoding(address)
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InvalidArgumentError("address", address, f"is no address: {error}") from None
    pairs = parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True)
    given = dict(pairs)
    if len(given) < len(pairs):
        raise InvalidArgumentError("address", _shown(address), "has a parameter twice")
    own = {name: given.pop(name) for name in _OWN if name in given}
    shown = _shown(address)
    if "://" in parts.path:
        rule = "is several addresses: hosts of one server and its standbys are HOST1:PORT,HOST2:PORT in one address"
        raise InvalidArgumentError("address", shown, rule)
    schema = own.get("schema", "recollect")
    if not _NAME.fullmatch(schema):
        rule = "schema must be a plain name: lower-case letters, digits and _, at most 63"
        raise InvalidArgumentError("address", shown, rule)
    pool = own.get("pool", str(Address.pool))
    if not (pool.isascii() and pool.isdigit() and 1 <= int(pool) <= _MOST_CONNECTIONS):
        raise InvalidArgumentError("address", shown, f"pool must be a number from 1 to {_MOST_CONNECTIONS}")
    for name in ("pgbouncer", "replicated"):
        if own.get(name, "0") not in ("0", "1"):
            raise InvalidArgumentError("address", shown, f"{name} must be 0 or 1")
    clock_s = own.get("clock", str(Address.clock_s))
    if not (clock_s.isascii() and clock_s.isdigit() and 1 <= int(clock_s) <= _MOST_CLOCK_S):
        raise InvalidArgumentError("address", shown, f"clock must be a number of seconds from 1 to {_MOST_CLOCK_S}")
    if "password" not in given and not _password(parts.netloc) and os.environ.get(PASSWORD_FILE_VARIABLE):
        given["password"] = _password_of(os.environ[PASSWORD_FILE_VARIABLE])
    query = urlencode({**_DEFAULTS, **given}, quote_via=quote)
    return Address(
        conninfo=f"{parts.scheme}://{parts.netloc}{parts.path}?{query}",
        shown=shown,
        schema=schema,
        pool=int(pool),
        pgbouncer=own.get("pgbouncer") == "1",
        cache=os.path.abspath(os.path.expanduser(own["cache"])) if own.get("cache") else None,
        replicated=own.get("replicated") == "1",
        clock_s=int(clock_s),
    )


def _check_encoding(address: str) -> None:
    """Raise InvalidArgumentError if a password is not percent-encoded: a message could then show a part of it."""
    scheme, _, rest = address.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, hosts = authority.rpartition("@")
    ports = [port for each in re.sub(r"\[[^]]*\]", "", hosts).split(",") for port in each.split(":")[1:]]
    if (
        "@" in user
        or re.search(r"[\[\]]", user)
        or re.search("%(?![0-9A-Fa-f]{2})", rest)
        or (not at and "@" in rest and not all(port.isdigit() or not port for port in ports))
        or "#" in rest
    ):
        rule = "special characters of a user, password or value must be percent-encoded, such as %40 for @"
        raise InvalidArgumentError("address", f"{scheme}://...", rule)


def _password(netloc: str) -> str:
    return netloc.rpartition("@")[0].partition(":")[2]


def _password_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreIOError(path, f"{PASSWORD_FILE_VARIABLE}: {error}") from error


def _shown(address: str) -> str:
    """Return an address without its secrets."""
    parts = urlsplit(address)
    user, at, hosts = parts.netloc.rpartition("@")
    pairs = [(name, value) for name, value in parse_qsl(parts.query.replace("+", "%2B")) if name not in _SECRET]
    query = f"?{unquote(urlencode(pairs))}" if pairs else ""
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{hosts}{parts.path}{query}"
