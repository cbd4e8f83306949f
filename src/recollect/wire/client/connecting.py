"""Connecting to a server: from an address to a memory."""

from __future__ import annotations

from recollect.arguments.signatures import named
from recollect.errors import InvalidArgumentError
from recollect.ledger.commits import Branch
from recollect.memory.memory import Memory, namespace_name
from recollect.operations import Now, check_count, check_timeout
from recollect.wire.client.executor import RemoteExecutor
from recollect.wire.client.transport import Patience, Transport

_UNIX = "unix://"


@named
def connect(
    address: str = _UNIX,
    namespace: str = "default",
    *,
    token: str | None = None,
    timeout: float = 60.0,
    retries: int = 3,
) -> Memory:
    """Connect to a server (`recollect serve`) and return a memory: the same calls, executed by the server.

        memory = recollect.connect("unix:///run/user/1000/recollect/recollect.sock")
        memory.remember("Ana prefers window seats", user="ana")

    What cannot be sent raises UnsupportedError: custom filters, functions passed to `update`, progress callbacks. Paths
    (`backup`) are paths on the machine of the server.

    Args:
        address: "unix:///PATH" (without a path: the socket in the user's runtime folder), or "http://HOST:PORT" or
            "https://HOST", perhaps with a path.
        namespace: The name of the namespace.
        token: The token that the server expects, over HTTP.
        timeout: Seconds that an answer may take, above 0 to 86,400.
        retries: How often a message is sent again if the connection fails or the server is busy, 0 or more. Only
            messages that change nothing, or carry an idempotency key, are repeated; with retries, every write carries
            one that can.

    Returns:
        The memory. Close it with `close()`, or use it as a context manager. For asyncio, pass it to `AsyncMemory`.

    Raises:
        InvalidArgumentError: An argument is invalid.
        StoreServerError: The server cannot be reached.
        ServerVersionError: It speaks another version of the protocol.
        TokenError: It needs a token, or another one.
        AccessError: The token does not allow to read the namespace.
    """
    check_timeout(timeout)
    if not timeout:
        raise InvalidArgumentError("timeout", timeout, "must be above 0")
    check_count("retries", retries, least=0)
    if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
        raise InvalidArgumentError("token", "...", "must be printable ASCII text, without a line break at its end")
    branch = Branch(namespace_name(namespace))
    memory = Memory(
        RemoteExecutor(_transport(address, token, float(timeout)), Patience(float(timeout), retries)), branch
    )
    try:
        memory.execute(Now())
    except BaseException:
        memory.close()
        raise
    return memory


def _transport(address: str, token: str | None, timeout_s: float) -> Transport:
    if not isinstance(address, str) or "\0" in address:
        raise InvalidArgumentError("address", address, "must be unix:///PATH, http://HOST:PORT or https://HOST")
    if address.startswith(_UNIX):
        if token is not None:
            raise InvalidArgumentError("token", "...", "is for HTTP: a socket knows its users")
        from recollect.wire.client.unix import UnixTransport

        return UnixTransport(address.removeprefix(_UNIX) or _default_socket(), timeout_s)
    from recollect.wire.client.http import HttpTransport

    return HttpTransport(address, token, timeout_s)


def _default_socket() -> str:
    from recollect.wire import default_socket

    return str(default_socket())
