"""The default limits of servers."""

from __future__ import annotations

#: Maximum size of a request: a body, or a line, in bytes.
BODY_BYTES = 16 * 2**20
#: Seconds that a body may take to arrive.
BODY_S = 30.0
#: Seconds that a call may take before its client is answered. A read ends a little earlier, to say why.
CALL_S = 60.0
#: The longest time that a call can be allowed, in seconds.
MOST_CALL_S = 3600.0
#: Number of requests of one token that run at the same time.
MOST_RUNNING = 32
#: Seconds that what runs may take when the server stops.
DRAIN_S = 30.0
#: The longest time that a server can go on before it stops, in seconds.
MOST_LEAVE_S = 600.0
#: Maximum number of workers of a server.
MOST_WORKERS = 64
#: How long a batch may stay open, in seconds. It holds the write lock, for which a write waits up to ten seconds
#: (`recollect.open(timeout=)`): a batch must be shorter, or those that wait for it would fail.
BATCH_S = 5.0
#: The longest time that a batch can be allowed, in seconds.
MOST_BATCH_S = 9.0
#: Seconds that a write, or a batch, waits for its turn among those of other clients.
TURN_S = 10.0
#: How long an export may stay open, in seconds.
EXPORT_S = 900.0
#: The rights of tokens: that of a user on records of their own, and the others from the least to the greatest.
RIGHTS = ("own", "read", "write", "admin")
OWN = RIGHTS[0]
