"""The calls that find nodes by what they say: search, and an outline with a focus for a prompt."""

from __future__ import annotations

from collections.abc import Collection

from recollect.arguments.checks import check_count, check_text
from recollect.arguments.signatures import all_named
from recollect.calls.tokens import Tokenizer, counter
from recollect.engine.results import Similar
from recollect.errors import InvalidArgumentError
from recollect.facets.outline.focusing import Focusing
from recollect.facets.outline.reading import PRIVATE, OutlineReads, shown_entries
from recollect.facets.outline.records import MARKED
from recollect.facets.outline.values import (
    FocusedText,
    OutlineMatch,
    OutlineMatches,
    outline_node,
)
from recollect.filters.tree import AllOf, AnyOf, Filter, Is, Not, Tag, Under
from recollect.operations import Count, FindSimilar

#: Maximum number of characters of a focused node that others are compared with.
_LONGEST_QUESTION = 2000


@all_named
class OutlineSearches(OutlineReads):
    """The calls that find nodes by what they say."""

    def search(
        self,
        text: str,
        k: int = 10,
        *,
        under: str | None = None,
        minimum: float = 0.0,
        marked: bool | None = None,
        private: Collection[str] = (),
        embed: bool = True,
    ) -> OutlineMatches:
        """Return the nodes that are most similar to a text, most similar first.

        With an embedder, similarity is the cosine of the vectors, and equal texts are embedded once. Without one, or if
        it fails, it is the confidence of `Memory.recall`, and `measure` and `notes` say so.

        Args:
            k: Maximum number of nodes.
            under: Search this node and what is below it. None: all outlines.
            minimum: The least similarity, inclusive; 0 to 1.
            marked: Search only nodes that are marked by the attribute EMBED (any value but false, "no", "nil", "0" and
                ""). None: only these if there are any.
            private: Leave out nodes with one of these tags, and what is below them.
            embed: With an embedder, embed those texts that may be found and have no vector first.

        Raises:
            UnknownRecordError: There is no node `under`.

        Cost:
            That of a recall, or one product for each node's vector; and the embedding of new texts.
        """
        if marked is not None and not isinstance(marked, bool):
            raise InvalidArgumentError("marked", marked, "must be true, false or None")
        parts: list[Filter] = []
        if under is not None:
            top = self._known(under).id
            if [entry.id for entry in self._entries(None, depth=0)] != [top]:  # else it is everything
                parts.append(AnyOf.of(Is("id", (top,)), Under((top,))))
        if hidden := sorted(self._private(private)):
            parts.append(Not(AnyOf.of(Is("id", tuple(hidden)), Under(tuple(hidden)))))
        is_marked = AllOf.of(*parts, Tag(MARKED))
        if marked or (marked is None and self._nodes.execute(Count(where=is_marked))):
            parts.append(Tag(MARKED))
        found: Similar = self._nodes.execute(
            FindSimilar(text=text, k=k, minimum=minimum, where=AllOf.of(*parts), embed=embed)
        )
        matches = (OutlineMatch(outline_node(each.record), each.similarity) for each in found.found)
        return OutlineMatches(tuple(matches), found.measure, found.notes)

    def focus(
        self,
        node_id: str | None = None,
        max_tokens: int = 2000,
        *,
        question: str | None = None,
        under: str | None = None,
        k: int = 5,
        minimum: float = 0.5,
        private: Collection[str] = PRIVATE,
        tokenizer: Tokenizer | None = None,
    ) -> FocusedText:
        """Return an outline as text for a prompt: a node and what is similar to it in full, the rest by title.

        Titles come in the order of their distance from the node, up to the budget. A text that is too long for it is
        cut. Stored text is data that others may have written: it is quoted line by line.

        Without a node it is a skeleton of all outlines: their titles, the uppermost first.

        Args:
            node_id: The node in focus; None: no node.
            max_tokens: The budget, 1 or more.
            question: What other nodes are compared with. None: the title and text of the focused node.
            under: Show this node and what is below it. None: the whole outline; without a focus, all outlines.
            k: Maximum number of similar nodes, 0 or more.
            minimum: The least similarity of them. See `search`.
            private: Leave out nodes with one of these tags (in any case), and what is below them.
            tokenizer: Converts a text to its tokens or to their number. Default: a quarter of the UTF-8 bytes.

        Returns:
            A str with `full`, `titles`, `omitted`, `private`, `tokens`, `measure` and `notes`. Empty if nothing fits.

        Raises:
            UnknownRecordError: There is no such node.
            InvalidArgumentError: An argument is invalid, the focused node (without one, `under`) is private, or it is
                not below `under`.

        Cost:
            All titles of the outline are read, and `search`; without a node and a question, only the titles.
        """
        check_count("max_tokens", max_tokens)
        check_count("k", k, least=0)
        count = counter(tokenizer)
        node = None if node_id is None else self._known(node_id)
        top = under
        if top is None and node is not None:
            top = next((each.id for each in self.ancestors(node.id)), node.id)
        if question is not None:
            check_text("question", question, blank=True)
        asked = question if question is not None else ("" if node is None else node.content or "")[:_LONGEST_QUESTION]
        similar = OutlineMatches((), "confidence")
        if k and asked.strip():
            similar = self.search(asked, k + 1, under=top, minimum=minimum, private=private)
        # What is private is read last: a text that was read when it was not private may be shown.
        every = self._entries(None if top is None else self._known(top).id)
        if node is not None and node.id not in {entry.id for entry in every}:
            raise InvalidArgumentError("node_id", node_id, f"is not below {under}")
        hidden = self._private(private)
        name, start = ("under", top) if node is None else ("node_id", node.id)
        if start is not None and not hidden.isdisjoint((start, *(each.id for each in self.ancestors(start)))):
            raise InvalidArgumentError(name, start, "is private")
        shown = shown_entries(every, hidden)
        empty = count("")
        size = (lambda text: len(text.encode("utf-8")) / 4) if tokenizer is None else lambda text: count(text) - empty
        focusing = Focusing(shown, node, max_tokens - empty, size)
        visible = {entry.id for entry in shown}
        of_focus = () if node is None else (node.id,)
        others = [each.node for each in similar if each.node.id not in of_focus and each.node.id in visible]
        focusing.fill(others[:k])
        while (tokens := count(text := focusing.text())) > max_tokens and focusing.shorten(tokens - max_tokens):
            pass
        out = FocusedText(text)
        out.full, out.titles, out.private = focusing.full, focusing.titles, len(every) - len(shown)
        out.omitted = len(shown) - len(out.full) - len(out.titles)
        out.tokens, out.measure, out.notes = (tokens if text else 0), similar.measure, similar.notes
        return out
