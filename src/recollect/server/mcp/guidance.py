"""Texts of a server for a model: instructions when it connects, and a prompt."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from pathlib import Path

from recollect.agents import TRUST
from recollect.server.mcp.tools import Access, ToolError

PROMPT = "recall_for_task"
PROMPT_TITLE = "Recall what matters for this task"
PROMPT_DESCRIPTION = "Add what the memory knows about a task to the conversation, before the work begins."
#: Argument of the prompt -> its description.
PROMPT_ARGUMENTS = {"task": "The task, in a sentence", "user": "The user for whom it is done"}
_TOKENS = 2000


def instructions(tools: Collection[str], *, read_only: bool) -> str:
    """Return when to recall and when to remember, for the tools that the server has."""
    parts = ["This is your long-term memory: it outlasts the conversation."]
    if "recall" in tools:
        parts.append(
            "Recall before you answer whatever may depend on earlier conversations: preferences, people, projects, "
            "decisions, dates. Ask in natural language, with the names that you know. Standing instructions that "
            "recall returns always apply. At the start of a task, call context once."
        )
    if "remember" in tools:
        parts.append(
            "Remember at once what will matter later: preferences, facts about people and projects, decisions with "
            "their reasons, and how tasks ended. One fact in a complete sentence, with names and dates; no secrets, "
            "and nothing that the user wants forgotten. If a fact has changed, find it with recall and update it."
        )
    if "create_entities" in tools:
        parts.append(
            "For people and things with many facts and relations, keep a knowledge graph with create_entities, "
            "add_observations and create_relations." + (" Recall finds its facts, too." if "recall" in tools else "")
        )
    if "recall" not in tools and "search_nodes" in tools:
        parts.append("Search the knowledge graph before you answer, one word or name at a time.")
    if read_only:
        parts.append("This connection can only read.")
    marks = " as standing instructions of the user" if "recall" in tools else ""
    parts.append(f"What the memory contains is {TRUST}{marks}.")
    return " ".join(parts)


def prompt_arguments(access: Access) -> dict[str, str]:
    """Return the arguments of the prompt, with their descriptions."""
    return {name: text for name, text in PROMPT_ARGUMENTS.items() if name != "user" or access.user is None}


def prompt(access: Access, arguments: dict[str, str]) -> str:
    """Return the text of the prompt for a task.

    Raises:
        ToolError: An argument is missing or unknown.
    """
    known = ", ".join(prompt_arguments(access))
    unknown = [name for name in arguments if name not in prompt_arguments(access)]
    if unknown or not arguments.get("task", "").strip():
        raise ToolError(f"unknown argument {unknown[0]!r}; known: {known}" if unknown else 'pass the argument "task"')
    context = access.reading().context(arguments["task"], _TOKENS, user=arguments.get("user"))
    found = str(context) or "The memory contains nothing about it."
    return f"Task: {arguments['task']}\n\nWhat the memory knows that may matter for it:\n\n{found}"


# The import of the reference memory server's file when a server first starts with it. The file stays as it is.

#: The environment variable with the path of the file.
GRAPH_VARIABLE = "MEMORY_FILE_PATH"


def import_graph(access: Access, path: str, *, report: Callable[[str], object]) -> None:
    """Import a file, unless it was imported before. A record states that it was.

    Deleting what was imported does not bring it back at the next start, and neither does forgetting that record.

    Args:
        access: Where to store it.
        path: The file; "~" is the user's home, and relative paths start at the current folder.
        report: Called with each line for the user.
    """
    try:
        file = Path(path).expanduser().absolute()
        size = file.stat().st_size if file.is_file() else None
    except (OSError, RuntimeError, ValueError) as error:
        report(f"{GRAPH_VARIABLE} was not imported: {error}")
        return
    if not file.exists():
        report(f"there is no file {file} ({GRAPH_VARIABLE}), so nothing was imported")
        return
    if size is not None and size <= 1:
        return  # an empty graph is an empty line
    if access.read_only:
        report(f"{file} was not imported, because the server can only read")
        return
    done_id = f"imported-{hashlib.sha256(str(file).encode('utf-8', 'surrogateescape')).hexdigest()[:24]}"
    from recollect.errors import ImportFormatError  # imports are for those who have such a file
    from recollect.importers.knowledge_graph import KnowledgeGraph
    from recollect.importers.run import Source, import_source

    memory = access.reading()
    before = memory.get(done_id)
    if before is not None or memory.changes(id=done_id, limit=1):
        if before is not None and before.metadata.get("file") not in (None, _facts_of(file)):
            report(f"{file} has changed since its import; `recollect import mcp-memory` adds what is new")
        return
    try:
        source = Source(KnowledgeGraph(), file)  # before the store is created
    except ImportFormatError as error:
        report(f"{GRAPH_VARIABLE} was not imported: {error}")
        return
    memory = access.writing()
    done = import_source(memory, source)
    count = done.created + done.updated + done.unchanged
    memory.remember(
        f"Imported the knowledge graph in {file.name}: {count} records.",
        id=done_id,
        kind="import",
        metadata={"records": count, "damaged": len(done.damaged), "file": _facts_of(file)},
    )
    report(f"imported {count} records from {file}, which is not changed from now on")
    for damage in done.damaged:
        report(f"not imported: {damage.place}: {damage.reason}")


def _facts_of(file: Path) -> list[int] | None:
    """Return the size and the time of change of a file. A digest would confirm guesses of what is erased later."""
    try:
        facts = file.stat()
    except OSError:
        return None
    return [facts.st_size, facts.st_mtime_ns] if file.is_file() else None
