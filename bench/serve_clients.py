"""Clients of a server in a process of their own, for `bench.serve`: threads with a connection each.

They read answers and see whether these are errors, but do not decode them, so that the server is the limit and not
they. Arguments: the path of the socket, the number of clients, and the file of the requests, one a line. For each line
of input, a number of seconds, they send requests for so long, each when the answer to the last one has come, and print
the latencies of all in ms as a JSON list. Each client sends its share of the requests, and begins again after the last.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from itertools import cycle
from pathlib import Path

_CHUNK, _PATIENCE_S = 2**18, 60.0


def connected(path: str) -> socket.socket:
    """A connection to the server."""
    channel = socket.socket(socket.AF_UNIX)
    channel.settimeout(_PATIENCE_S)
    channel.connect(path)
    return channel


def answer(channel: socket.socket, line: bytes) -> bytes:
    """The answer to a request. Raises: RuntimeError: it is an error, or there is none."""
    channel.sendall(line)
    chunks = [channel.recv(_CHUNK)]
    while chunks[-1] and not chunks[-1].endswith(b"\n"):
        chunks.append(channel.recv(_CHUNK))
    if not chunks[0].startswith(b'{"ok":true') or not chunks[-1]:
        raise RuntimeError(f"a request failed: {chunks[0][:200]!r}")
    return b"".join(chunks)


def _send(channel: socket.socket, lines: cycle[bytes], seconds: float, took: list[float]) -> None:
    """Send requests for so long, and note how many ms each took."""
    began = time.perf_counter()
    ends = began + seconds
    while began < ends:
        answer(channel, next(lines))
        ended = time.perf_counter()
        took.append((ended - began) * 1000)
        began = ended


def main(path: str, clients: int, file: str) -> None:
    lines = Path(file).read_bytes().splitlines(keepends=True)
    channels = [connected(path) for _ in range(clients)]
    shares = [cycle(lines[at::clients]) for at in range(clients)]
    print("ready", flush=True)
    for line in sys.stdin:
        took: list[float] = []
        threads = [
            threading.Thread(target=_send, args=(channel, share, float(line), took))
            for channel, share in zip(channels, shares, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
