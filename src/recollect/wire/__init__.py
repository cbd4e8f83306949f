"""The wire between programs: requests and answers as JSON, and what executes the requests of clients on a memory.

Servers (`recollect.server`) and clients (`recollect.wire.client`) stand on it. docs/server.md describes the messages.
"""

from recollect.engine.follower import Use
from recollect.engine.results import record_from_json, record_json
from recollect.engine.scope import Place
from recollect.operations.base import ADMIN, READ, RIGHTS, WRITE, Right
from recollect.wire.answers import ANSWER_BYTES, RECORDS, Page, check_size, commits, fitting, page
from recollect.wire.desk import ClientBatch, Desk
from recollect.wire.encoding import decode, default_socket, encode
from recollect.wire.grants import ALLOWED, OWN, OWN_OPERATIONS, Allowed, Grant
from recollect.wire.messages import (
    PROTOCOL,
    Request,
    answer_json,
    error_json,
    place_json,
    read_answer,
    read_place,
    read_request,
    read_result,
    request_json,
    scope_from_json,
    send_all,
)

__all__ = [
    "ADMIN",
    "ALLOWED",
    "ANSWER_BYTES",
    "OWN",
    "OWN_OPERATIONS",
    "PROTOCOL",
    "READ",
    "RECORDS",
    "RIGHTS",
    "WRITE",
    "Allowed",
    "ClientBatch",
    "Desk",
    "Grant",
    "Page",
    "Place",
    "Request",
    "Right",
    "Use",
    "answer_json",
    "check_size",
    "commits",
    "decode",
    "default_socket",
    "encode",
    "error_json",
    "fitting",
    "page",
    "place_json",
    "read_answer",
    "read_place",
    "read_request",
    "read_result",
    "record_from_json",
    "record_json",
    "request_json",
    "scope_from_json",
    "send_all",
]
