"""A local server that speaks as much of OpenAI's and Anthropic's APIs as an agent with a tool needs.

Its model is a function of the request: it quotes the line of the system prompt that shares most words with the last
message, calls a tool that the message mentions, and repeats a tool's result. It knows nothing else, so a right answer
shows that what was recalled reached the prompt.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

IGNORANCE = "I do not know."


class Call(NamedTuple):
    """The tool that the model wants to use, and its arguments."""

    tool: str
    arguments: dict[str, str]


def words(text: str) -> set[str]:
    """The first five letters of each long word, in lower case."""
    return {word[:5].lower() for word in re.findall(r"\w{4,}", text)}


def think(system: str, last: dict[str, Any], tools: list[dict[str, Any]]) -> str | Call:
    """Return the model's answer to the last message: a text, or a call of a tool."""
    if (result := result_in(last)) is not None:
        return f"The answer is {result}."
    question = last["content"]
    for tool in tools:
        for name, schema in tool["parameters"]["properties"].items():
            if schema["type"] == "string" and words(tool["name"].replace("_", " ")) & words(question):
                return Call(tool["name"], {name: re.findall(r"[A-Z]\w+", question)[-1]})
    lines = [line for line in system.splitlines() if line.startswith("- ")]
    best = max(lines, key=lambda line: len(words(line) & words(question)), default="")
    return f"You said: {best[2:]}" if words(best) & words(question) else IGNORANCE


def result_in(message: dict[str, Any]) -> str | None:
    """Return the result of a tool that a message consists of, in any of the three APIs."""
    if message.get("role") == "tool":
        return str(message["content"])
    if message.get("type") == "function_call_output":
        return str(message["output"])
    if isinstance(message.get("content"), list) and message["content"][0]["type"] == "tool_result":
        return str(message["content"][0]["content"])
    return None


def chat_completion(request: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's POST /v1/chat/completions."""
    messages = request["messages"]
    system = "\n".join(each["content"] for each in messages if each["role"] == "system")
    said = think(system, messages[-1], [tool["function"] for tool in request.get("tools", [])])
    message: dict[str, Any] = {"role": "assistant", "content": said, "refusal": None}
    if isinstance(said, Call):
        function = {"name": said.tool, "arguments": json.dumps(said.arguments)}
        message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    reason = "tool_calls" if isinstance(said, Call) else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return {"id": "c1", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice]}


def response(request: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's POST /v1/responses."""
    said = think(request["instructions"], request["input"][-1], request["tools"])
    if isinstance(said, Call):
        item: dict[str, Any] = {"type": "function_call", "call_id": "call_1", "name": said.tool}
        item |= {"id": "fc_1", "arguments": json.dumps(said.arguments), "status": "completed"}
    else:
        content = [{"type": "output_text", "text": said, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    head = {"id": "resp_1", "object": "response", "created_at": 0, "status": "completed", "model": request["model"]}
    return head | {"output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": request["tools"]}


def message(request: dict[str, Any]) -> dict[str, Any]:
    """Anthropic's POST /v1/messages."""
    tools = [{"name": tool["name"], "parameters": tool["input_schema"]} for tool in request["tools"]]
    said = think(request["system"], request["messages"][-1], tools)
    block: dict[str, Any] = {"type": "text", "text": said}
    if isinstance(said, Call):
        block = {"type": "tool_use", "id": "toolu_1", "name": said.tool, "input": said.arguments}
    reason = "tool_use" if isinstance(said, Call) else "end_turn"
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [block]}
    return head | {"stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}


ENDPOINTS = {"/v1/chat/completions": chat_completion, "/v1/responses": response, "/v1/messages": message}


class Handler(BaseHTTPRequestHandler):
    """Answers one request by the function of its path."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(ENDPOINTS[self.path](request)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def model_server() -> Iterator[dict[str, str]]:
    """Run the server on a free port; yield the environment variables with which the SDKs find it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield {
                "OPENAI_BASE_URL": f"{url}/v1",
                "OPENAI_API_KEY": "none",
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "none",
                "NO_PROXY": "127.0.0.1",
            }
        finally:
            server.shutdown()
            thread.join()
