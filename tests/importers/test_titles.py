"""Finding sections by the titles above them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect.engine.results import Hits, Why
from recollect.importers import ImportReport

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]


def runbook(name: str, backups: str, port: int) -> str:
    return f"""\
# {name} runbook

## Failover

Promote the replica in the second zone, then point the clients to it. Call the team on duty first.

## Backups

A dump is made every night at two and kept for {backups}.

## Ports

Clients connect to port {port}. Metrics are on the next one.
"""


def office(city: str, where: str) -> str:
    return f"""\
---
title: {city} office
tags: [office]
date: 2026-03-01
---
{where}

# Arriving

Ring twice. The door code changes every Monday.

# Wifi

The password is on the whiteboard in the kitchen.

# Parking

There is none at the house; use the garage around the corner.
"""


def page(title: str, **sections: str) -> str:
    return f"# {title}\n\n" + "\n\n".join(f"## {name}\n\n{text}" for name, text in sections.items())


#: A small folder of documents: pages that are built alike, so that only their titles tell their sections apart.
DOCS = {
    "runbooks/postgres.md": runbook("Postgres", "thirty days", 5432),
    "runbooks/redis.md": runbook("Redis", "one week", 6379),
    "runbooks/mysql.md": runbook("MySQL", "two months", 3306),
    "runbooks/kafka.md": runbook("Kafka", "three days", 9092),
    "runbooks/nginx.md": runbook("Nginx", "a year", 443),
    "runbooks/rabbitmq.md": runbook("RabbitMQ", "ten days", 5672),
    "offices/lisbon.md": office("Lisbon", "Third floor, above the bakery."),
    "offices/oslo.md": office("Oslo", "First floor, by the fjord."),
    "offices/quito.md": office("Quito", "Ninth floor, next to the park."),
    "offices/turin.md": office("Turin", "Ground floor, behind the station."),
    "offices/kyoto.md": office("Kyoto", "Second floor, over the tea shop."),
    "products/kettle.md": """\
# Kettle K2

## Cleaning

### Lid

Wipe it with a damp cloth.

### Filter

Soak it in vinegar overnight.

## Warranty

Three years from the day of purchase.
""",
    "products/toaster.md": """\
# Toaster T5

## Cleaning

### Tray

Pull it out and shake off the crumbs.

### Lid

It has none.

## Warranty

Eighteen months, without the cord.
""",
    **{
        f"handbuch/{name.lower()}.md": page(name, Antrag="Vier Wochen vorher im Portal stellen.", Frist="Ende März.")
        for name in ("Urlaub", "Dienstreisen", "Fortbildung", "Elternzeit")
    },
    **{
        f"recetas/{name.lower()}.md": page(name, Ingredientes="Aceite, sal y caldo.", Tiempo="Unos cuarenta minutos.")
        for name in ("Paella", "Gazpacho", "Fabada", "Cocido")
    },
    **{
        f"手册/{name}.md": page(name, 清洗="每周五用热水冲一遍。", 故障="关掉电源，等五分钟。")
        for name in ("打印机", "咖啡机", "洗碗机", "空调")
    },
}
#: What is asked, and the section that answers it.
QUESTIONS = {
    "redis backups how long": "runbooks/redis.md#backups",
    "How long are MySQL backups kept?": "runbooks/mysql.md#backups",
    "when is the postgres dump made?": "runbooks/postgres.md#backups",
    "which port does redis use": "runbooks/redis.md#ports",
    "postgres port": "runbooks/postgres.md#ports",
    "What do we do when MySQL fails over?": "runbooks/mysql.md#failover",
    "wifi password in Lisbon": "offices/lisbon.md#wifi",
    "How do I get on the wifi in the Oslo office?": "offices/oslo.md#wifi",
    "Where can I park in Lisbon?": "offices/lisbon.md#parking",
    "oslo parking": "offices/oslo.md#parking",
    "arriving at the oslo office": "offices/oslo.md#arriving",
    "which floor is the Lisbon office on?": "offices/lisbon.md#top",
    "how to clean the kettle's filter": "products/kettle.md#filter",
    "cleaning the lid of the kettle": "products/kettle.md#lid",
    "toaster warranty": "products/toaster.md#warranty",
    "How long is the warranty of the kettel?": "products/kettle.md#warranty",
    "Wie stelle ich einen Antrag auf Urlaub?": "handbuch/urlaub.md#antrag",
    "Antrag für Dienstreisen": "handbuch/dienstreisen.md#antrag",
    "ingredientes de la paella": "recetas/paella.md#ingredientes",
    "¿Cuánto tiempo necesita el gazpacho?": "recetas/gazpacho.md#tiempo",
    "打印机故障怎么办": "手册/打印机.md#故障",
    "咖啡机怎么清洗": "手册/咖啡机.md#清洗",
}


@pytest.fixture
def asked(write: Write, run: Run, memory: Memory, tmp_path: Path) -> Callable[[], dict[str, int]]:
    """The place of the right section for each question: 1 for the first hit, 99 if it is none of the first ten."""
    for name, text in DOCS.items():
        write(f"docs/{name}", text)
    run("markdown", tmp_path / "docs")

    def asked() -> dict[str, int]:
        out = {}
        for question, answer in QUESTIONS.items():
            assert memory.get(answer) is not None
            ids = [hit.record.id for hit in memory.recall(question)]
            out[question] = ids.index(answer) + 1 if answer in ids else 99
        return out

    return asked


def test_each_question_finds_its_section_among_the_first_three(asked: Callable[[], dict[str, int]]) -> None:
    places = asked()
    assert {question: place for question, place in places.items() if place > 3} == {}
    assert sum(place == 1 for place in places.values()) >= 20


def test_without_titles_half_of_these_questions_find_another_section_first(
    asked: Callable[[], dict[str, int]], memory: Memory
) -> None:
    for record in memory.find():
        metadata = {key: value for key, value in record.metadata.items() if key not in ("headings", "title")}
        memory.update(record.id, metadata=metadata)
    places = asked().values()
    assert sum(place > 1 for place in places) >= len(QUESTIONS) // 2
    assert sum(place > 3 for place in places) >= 5


def test_why_names_the_titles_share_and_the_shares_add_up(write: Write, run: Run, memory: Memory) -> None:
    run("markdown", write("redis.md", DOCS["runbooks/redis.md"]))
    run("markdown", write("mysql.md", DOCS["runbooks/mysql.md"]))
    hits = memory.recall("redis backups")
    first = hits[0]
    assert first.record.id == "redis.md#backups"
    assert set(first.why.shares) == {"words", "title"}
    assert sum(first.why.shares.values()) == first.score
    by_word = {word.word: word for word in first.why.words}
    assert by_word["redis"].title == by_word["redis"].score == first.why.shares["title"]
    assert (by_word["redis"].own, by_word["backups"].title) == (0.0, 0.0)
    assert "redis in the title" in str(first.why)
    assert Why.from_json(first.why.to_json()) == first.why
    assert Hits.from_json(hits.to_json()) == hits


def test_a_section_is_found_by_a_misspelt_title(write: Write, run: Run, memory: Memory) -> None:
    run("markdown", write("redis.md", DOCS["runbooks/redis.md"]))
    (word,) = memory.recall("rediss")[0].why.words
    assert (word.like, word.own) == ("redis", 0.0)
    assert word.title > 0


def test_a_title_adds_less_than_the_text_and_more_if_the_text_has_the_word_not(memory: Memory) -> None:
    for name, text, title in [
        ("both", "# A\nboats", "boats"),
        ("text", "# A\nboats", "ships"),
        ("title", "# A\ntrains", "boats"),
        ("none", "# A\ntrains", "ships"),
    ]:
        memory.remember(text, id=name, metadata={"headings": [title, "A"]})
    scores = {hit.record.id: hit.score for hit in memory.recall("boat")}
    assert set(scores) == {"both", "text", "title"}
    assert scores["both"] > scores["text"] > scores["title"] > scores["both"] - scores["text"]


def test_titles_count_neither_as_length_nor_as_neighbours_of_the_text(memory: Memory) -> None:
    memory.remember("red sails", id="a", metadata={"title": "a very long title about many other boats"})
    memory.remember("red sails", id="b")
    assert len({hit.score for hit in memory.recall("red sails")}) == 1
    memory.remember("sails", id="c", metadata={"title": "red"})
    (hit,) = (hit for hit in memory.recall("red sails") if hit.record.id == "c")
    assert "pair" not in hit.why.shares


def test_titles_of_turns_are_not_searched(memory: Memory) -> None:
    memory.remember("hello", kind="conversation", conversation="c", metadata={"title": "boats"})
    assert not memory.recall("boats")


def test_a_scope_knows_nothing_of_titles_outside_of_it(memory: Memory) -> None:
    memory.remember("text", user="ana", metadata={"title": "boats"})
    memory.remember("boats", user="bob")
    bob = memory.scoped(user="bob")
    with recollect.open(":memory:") as alone:
        alone.remember("boats", user="bob")
        alone = alone.scoped(user="bob")
        assert [hit.score for hit in bob.recall("boats")] == [hit.score for hit in alone.recall("boats")]


@pytest.mark.parametrize("metadata", [{"title": 7}, {"headings": "a"}, {"headings": [1, {"a": 2}]}, {"headings": []}])
def test_metadata_that_are_no_titles_are_ignored(metadata: dict[str, Any], memory: Memory) -> None:
    memory.remember("boats", metadata=metadata)
    assert list(memory.recall("boats")[0].why.shares) == ["words"]
