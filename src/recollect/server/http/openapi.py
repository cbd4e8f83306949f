"""The description of the server (OpenAPI 3.1), made from the table of its routes and from the operations themselves."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from recollect import __version__ as version
from recollect.operations.base import all_operations
from recollect.server.http.answers import SCHEMAS, or_null
from recollect.server.http.routes import ROUTES, Described
from recollect.wire import RIGHTS

_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_IN = {"$ref": "#/components/schemas/In"}
#: Python's annotation of a field of an operation, as it is written -> the types that JSON has for it.
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_STREAMS = {"/export": "application/x-ndjson", "/changes": "text/event-stream"}


def description() -> dict[str, Any]:
    """Return the description as JSON."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        path = "/v1/{namespace}" + route.path.replace(":path", "")
        for method in route.methods:
            paths.setdefault(path, {})[method.lower()] = _operation(route, method)
    for path, summary in (
        ("/healthz", "Whether the process answers."),
        ("/readyz", "Whether the store can be read."),
        ("/metrics", "Metrics in the text format of Prometheus. With tokens: for the right admin on the whole store."),
    ):
        paths[path] = {"get": {"summary": summary, "responses": {"200": {"description": "OK"}}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Recollect",
            "version": version,
            "description": "Long-term memory for LLM agents. Errors are problem details (RFC 9457) with a stable code.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Operation": {"oneOf": _operations()}, "In": _in(), "Problem": _problem(), **SCHEMAS},
        },
        "security": [{"token": []}, {}],
        "x-rights": list(RIGHTS),
    }


def _operation(route: Described, method: str) -> dict[str, Any]:
    names = [part.strip("{}").removesuffix(":path") for part in route.path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in ("namespace", *names)
    ]
    out: dict[str, Any] = {"summary": route.summary}
    if method in ("GET", "DELETE"):
        for name, kind in route.fields.items():
            required = name in route.required
            form = {"style": "form", "explode": False} if kind == "array" else {}  # a list is separated by commas
            parameters.append({"name": name, "in": "query", "required": required, **form, "schema": {"type": kind}})
    elif route.path == "/import":
        out["requestBody"] = {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
    else:
        out["requestBody"] = {"content": {"application/json": {"schema": _body(route)}}}
    if method not in ("GET", "DELETE") and not route.path.startswith(_WITHOUT_KEY):
        key = {"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"}}
        parameters.append({**key, "description": "Repeated within a day: the first answer, and nothing is written."})
    answer = {"schema": {"$ref": f"#/components/schemas/{route.answer}"}} if route.answer else {}
    answers: dict[str, Any] = {"application/json": answer} if route.answer else {}
    if (stream := _STREAMS.get(route.path)) is not None or not route.answer:
        answers[stream or "application/json"] = {}
    problems = {"description": "A problem.", "content": {"application/problem+json": {"schema": _PROBLEM}}}
    return {
        **out,
        "parameters": parameters,
        "responses": {
            **{status: {"description": "OK", "content": answers} for status in _statuses(route)},
            "default": problems,
        },
    }


def _statuses(route: Described) -> tuple[str, ...]:
    """Return the statuses of answers that are no problems."""
    if not route.answer:
        return ("2XX",)
    return ("200", "201") if route.creates else ("200",)


#: Routes that write nothing, or whose writes are repeated safely without a key.
_WITHOUT_KEY = ("/recall", "/context", "/export", "/import", "/batches")


def _body(route: Described) -> dict[str, Any]:
    if route.path.endswith("/execute"):
        return {"$ref": "#/components/schemas/Operation"}
    own = SCHEMAS["Record"]["properties"]
    fields = {
        name: own[name] if own.get(name, {}).get("type") == kind else {"type": kind}
        for name, kind in route.fields.items()
    }
    fields |= {name: or_null(fields[name]) for name in route.cleared}
    return {"type": "object", "properties": {**fields, "in": _IN}, "required": list(route.required)}


def _operations() -> list[dict[str, Any]]:
    out = []
    for name, kind in sorted(all_operations().items()):
        fields: dict[str, Any] = {"op": {"const": name}, "in": _IN}
        required = ["op"]
        for each in dataclasses.fields(kind):  # type: ignore[arg-type]
            types = sorted({_TYPES[part.strip()] for part in str(each.type).split("|") if part.strip() in _TYPES})
            fields[each.name] = {"type": [*types, "null"]} if types else {}
            if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
                required.append(each.name)
        about = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
        out.append({"title": name, "description": about, "type": "object", "properties": fields, "required": required})
    return out


def _in() -> dict[str, Any]:
    text = {"type": "string"}
    scope = {"type": "object", "properties": dict.fromkeys(("user", "agent", "conversation"), text)}
    fields = {"branch": text, "beside": text, "scope": scope, "actor": text, "reason": text, "key": text}
    return {"type": "object", "description": "Where, for whom and why it is executed.", "properties": fields}


def _problem() -> dict[str, Any]:
    fields: dict[str, Any] = {name: {"type": "string"} for name in ("type", "title", "detail", "code")}
    fields |= {"status": {"type": "integer"}, "args": {"type": "array"}, "unchanged": {"type": "boolean"}}
    return {"type": "object", "properties": fields, "required": ["type", "title", "status", "detail", "code"]}
