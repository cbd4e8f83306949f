"""Importers: records from files of other formats, and from exports of this package.

`IMPORTERS` lists them by name, `run.import_path` runs one, and `jsonl.write_jsonl` exports. To add a format, write a
module with an `Importer` (see `base`) and list it here. Importers of public data sets are in `recollect.evaluation`.
"""

from __future__ import annotations

from recollect.importers.agent_sessions import AgentSessions
from recollect.importers.base import Damage, ImportedDocument, Importer, Item
from recollect.importers.chatgpt import ChatGPT
from recollect.importers.chroma import Chroma
from recollect.importers.claude import AnthropicMessages, Claude
from recollect.importers.claude_code import ClaudeCode
from recollect.importers.codex import Codex
from recollect.importers.jsonl import JsonLines, write_jsonl
from recollect.importers.knowledge_graph import KnowledgeGraph, write_graph
from recollect.importers.langgraph import LangGraphStore
from recollect.importers.markdown import Markdown, Text
from recollect.importers.mem0 import Mem0
from recollect.importers.messages import OpenAI
from recollect.importers.report import ImportReport
from recollect.importers.run import import_path
from recollect.importers.tables import Csv

__all__ = [
    "IMPORTERS",
    "Damage",
    "ImportReport",
    "ImportedDocument",
    "Importer",
    "Item",
    "import_path",
    "write_graph",
    "write_jsonl",
]

_ALL: tuple[Importer, ...] = (
    OpenAI(),
    AnthropicMessages(),
    ChatGPT(),
    Claude(),
    ClaudeCode(),
    Codex(),
    Mem0(),
    KnowledgeGraph(),
    LangGraphStore(),
    AgentSessions(),
    Chroma(),
    Text(),
    Markdown(),
    Csv(),
    JsonLines(),
)
#: Name -> importer.
IMPORTERS: dict[str, Importer] = {importer.name: importer for importer in _ALL}
