"""Give a chat model memory: it learns in one conversation and knows in the next, without a network.

    python examples/memory_aware_agent.py

The model here repeats the line of its prompt that shares most words with the question; put yours in its place.

Output:

    ana: The ferry leaves from pier 7 now.
    bot: I do not know.
    ana: From which pier does the ferry leave?
    bot: The ferry leaves from pier 7 now.
    turns remembered: 4
    tools: recall, search, context, history, entity, contradictions, recall_terms, terms_in_text, search_outline, focus_outline, judge_text
"""  # noqa: E501

from __future__ import annotations

import re

import recollect
from recollect.agents import MemoryAwareAgent


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}|\d+", text.lower()))


def chat(messages: list[dict[str, str]]) -> str:
    """Stands for a language model."""
    question = messages[-1]["content"]
    known = [line for message in messages[:-1] for line in message["content"].splitlines() if "pier" in line]
    best = max(known, key=lambda line: len(words(line) & words(question)), default="")
    return best.partition("user: ")[2] or "I do not know."


def main() -> None:
    with recollect.open(":memory:") as memory:
        for day, question in (
            ("monday", "The ferry leaves from pier 7 now."),
            ("tuesday", "From which pier does the ferry leave?"),
        ):
            agent = MemoryAwareAgent(chat, memory, user="ana", conversation=day)
            print("ana:", question)
            print("bot:", agent.ask(question))
        print("turns remembered:", memory.count("kind=conversation"))
        print("tools:", ", ".join(memory.scoped(user="ana").tools(read_only=True).names))


if __name__ == "__main__":
    main()
