"""The plugins by their names, as a scenario of NEST or of `recollect.sim` states them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from recollect.compat.nest.plugins import Blackboard, RecollectMemory, SemanticMemory
from recollect.compat.nest.vectors import AnthropicMemory, ChromaMemory, FaissMemory, OpenAIMemory

LAYER = "memory"
#: The group in which packages name their plugins for this layer.
GROUP = f"nest.plugins.{LAYER}"
_OWN: dict[str, type] = {
    "anthropic_embeddings": AnthropicMemory,
    "blackboard": Blackboard,
    "chroma": ChromaMemory,
    "faiss": FaissMemory,
    "openai_embeddings": OpenAIMemory,
    "recollect": RecollectMemory,
    "recollect-blackboard": Blackboard,
    "semantic": SemanticMemory,
}
#: Names of plugins that are refused -> why.
REFUSED = {
    "pgvector": "it would need a database server, and this package has no store on one yet: use 'faiss' or 'chroma', "
    "or pass an index of your own to recollect.compat.nest.VectorMemory(embed=..., index=...)"
}


class PluginRegistry:
    """Finds plugins by layer and name. Those that a package names in its entry points replace ours."""

    def __init__(self) -> None:
        self._found: dict[str, EntryPoint] = {each.name: each for each in entry_points(group=GROUP)}

    def resolve(self, layer: str, name: str) -> Any:
        """Return the class of a plugin.

        Raises:
            KeyError: There is none; the message names the layer and the name.
        """
        if layer == LAYER and name in self._found:
            return self._found[name].load()
        if layer == LAYER and name in _OWN:
            return _OWN[name]
        more = f": {REFUSED[name]}" if layer == LAYER and name in REFUSED else ""
        raise KeyError(f"no plugin for the layer {layer!r} has the name {name!r}{more}")

    def list_plugins(self, layer: str | None = None) -> list[tuple[str, str]]:
        """Return the layer and the name of each plugin, of one layer or of all."""
        names = {*self._found, *_OWN} if layer in (None, LAYER) else set()
        return [(LAYER, name) for name in sorted(names)]
