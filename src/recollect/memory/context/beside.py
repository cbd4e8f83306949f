"""What lies beside the records and helps to answer a question: the terms that it names, and the notes that match."""

from __future__ import annotations

from recollect.calls.namespace import NamespaceCalls
from recollect.calls.owners import Owners
from recollect.facets.glossary.operations import AnnotateTerms
from recollect.facets.glossary.records import DEFAULT_AGENT, entry_of
from recollect.facets.glossary.results import Annotation
from recollect.facets.outline.reading import PRIVATE
from recollect.facets.outline.searching import OutlineSearches
from recollect.filters.tree import Is
from recollect.memory.context.gathering import Candidate
from recollect.records.record import Record

#: Maximum number of notes that are considered, and the least similarity of their vectors. Without an embedder, it is a
#: confidence, of which the least is that for "auto".
_NOTES, _LEAST_COSINE = 20, 0.5


def terms_named(terms: NamespaceCalls, question: str, owners: Owners) -> list[Candidate]:
    """Return the terms that a question names by their key or an alias: those of the agent, then those of all agents."""
    agents = dict.fromkeys(each for each in (owners.agent, DEFAULT_AGENT) if each is not None)
    found: dict[str, Candidate] = {}
    for agent in agents:
        annotations: list[Annotation] = terms.execute(AnnotateTerms(agent=agent, text=question))
        for record in (record for each in annotations for record in each.records):
            shown = _definition(record)
            if shown is not None and _is_readable(record, owners):
                found.setdefault(record.id, Candidate(shown, "glossary", 0.0, {}, None))
    return list(found.values())


def _definition(record: Record) -> Record | None:
    """Return the record of a term with its definition as its text."""
    term = entry_of(record)
    if term is None:
        return None
    aliases = f" ({', '.join(term.aliases)})" if term.aliases else ""
    more = f"\n{term.description}" if term.description else ""
    return record.changed(content=f"{term.key}{aliases}: {term.value}{more}".strip())


def _is_readable(record: Record, owners: Owners) -> bool:
    """Return whether a record belongs to the user and the conversation, or to none; the agent was asked for."""
    return all(each.matches(record) for each in owners._replace(agent=None).readable)


def notes_matching(nodes: NamespaceCalls, question: str, owners: Owners, least: float) -> list[Candidate]:
    """Return the notes that match a question, best first, with their title. Private ones are left out."""
    found = OutlineSearches(nodes).search(question, _NOTES, minimum=least, private=PRIVATE)
    least = _LEAST_COSINE if found.measure == "cosine" else least
    similar = {each.node.id: each for each in found if each.similarity >= least and each.node.content}
    records = {record.id: record for record in nodes.find(Is("id", tuple(similar)))} if similar else {}
    return [
        Candidate(
            records[node_id].changed(content=(each.node.content or "").strip()), "outline", each.similarity, {}, None
        )
        for node_id, each in similar.items()
        if node_id in records and _is_readable(records[node_id], owners)
    ]
