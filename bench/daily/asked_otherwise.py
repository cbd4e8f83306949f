"""A second memory, and a hundred questions as people put them: times, lists, what replaced what, words, requests.

Everything is made up. A line of the memory is `day time author: text`. A question has a part of the text that answers
it, or several such parts; parts divided by "|" are equally good.
"""

from __future__ import annotations

from datetime import UTC, datetime

import recollect

#: The time of the questions, a Wednesday.
NOW = datetime(2026, 10, 28, 18, tzinfo=UTC)
_MEMORY = """
2026-05-02 10:00 Lena: We planted tomatoes and a fig tree behind the shed.
2026-05-03 11:00 Lena: The plumber replaced the tap in the bathroom.
2026-07-11 09:00 Omar: I repaired the gutter because the rain came through the ceiling.
2026-08-20 12:00 Lena: Today was the move to the new flat in Harbour Street.
2026-08-25 18:00 Omar: I bought a sofa and two lamps for the living room.
2026-09-05 18:00 Lena: Our tortoise Pebble ate the strawberries again.
2026-09-06 10:00 Omar: My parrot learned to whistle.
2026-09-12 19:00 Lena: I signed up for a pottery course so that I see more people.
2026-09-15 19:00 Omar: I go climbing every Thursday.
2026-09-18 20:00 Lena: I have been playing the cello since school.
2026-09-21 20:00 Omar: I finished the novel about the lighthouse keepers.
2026-09-30 08:00 Lena: The gas meter stands at 48213.
2026-10-02 09:00 Omar: The wall in the hall is painted in RAL6021.
2026-10-05 09:00 Lena: I ran 10km along the canal.
2026-10-10 12:00 Omar: We ate mussels at the pier.
2026-10-12 12:00 Lena: I cooked a lentil soup for the neighbours.
2026-10-15 16:00 Omar: The notary stamped the papers.
2026-10-19 09:00 Lena: The dentist filled a cavity.
2026-10-20 09:00 Omar: I lent the drill to Viktor.
2026-10-23 21:00 Lena: We watched a film about glaciers.
2026-10-24 15:00 Omar: We carved pumpkins with the twins.
2026-10-25 11:00 Lena: My aunt Greta came for brunch.
2026-10-26 08:30 Omar: The boiler lost pressure, I topped it up.
2026-10-27 07:45 Lena: I posted the parcel to Bergen.
2026-10-27 22:10 Omar: The fuse in the kitchen blew.
2026-10-28 09:00 Lena: The electrician promised to call back.
2026-10-28 16:00 Omar: I put the spare key under the blue pot.
2026-10-28 17:20 Lena: Passed my sailing exam ⛵️
2026-06-01 10:00 Jana: Mein Fahrradschloss klemmt.
2026-06-02 10:00 Jana: Das Schloss vom Gartentor ist neu.
2026-06-03 10:00 Jana: Der Geburtstagskuchen war aus Mohn.
2026-06-04 10:00 Jana: Das Fahrrad steht im Keller.
2026-10-21 10:00 Jana: Ich habe die Winterreifen montiert.
2026-09-01 10:00 user: I want to start a small bakery near the station.
2026-09-02 10:00 user: For the bakery I found a used oven for 900 euros.
2026-09-08 10:00 user: The bakery will be called Crumb and Co.
2026-09-22 10:00 user: The bank approved the loan for the bakery.
2026-10-07 10:00 user: Always answer questions about the bakery with a short list.
2026-10-13 10:00 user: The bakery opens on the first of December.
"""
#: Records that are not turns: the second of each pair replaces the first.
_FACTS = [
    ("The car is parked on level 2, near the lift", "It stands on level 5 today"),
    ("Our internet provider is Norrnet", "We changed to Fjordlink"),
    ("The meeting room is called Birch", "They renamed it to Alder"),
    ("The door code is 4471", "The new one is 9035"),
    ("Yara works as a nurse at the clinic", "She teaches at the college now"),
]
QUESTIONS: dict[str, list[tuple[str, str]]] = {
    "times": [
        ("What happened on Monday?", "boiler lost"),
        ("What did Omar do on the 15th?", "notary"),
        ("What did we do at the weekend?", "pumpkins|Greta"),
        ("What was on 10/15/2026?", "notary"),
        ("What was on 15.10.2026?", "notary"),
        ("What happened 2 hours ago?", "spare key"),
        ("What happened 40 minutes ago?", "sailing exam"),
        ("What was in the last three hours?", "spare key|sailing"),
        ("Who came on Sunday?", "Greta"),
        ("What went wrong last night?", "fuse"),
        ("What did Lena do yesterday?", "parcel"),
        ("What did we watch last Friday?", "glaciers"),
        ("What happened between 10 and 12 October?", "mussels|lentil"),
        ("What was done since Tuesday?", "fuse|parcel|electrician|spare key|sailing"),
        ("What did Omar do in the first week of October?", "RAL6021"),
        ("What was a week ago?", "drill|Winterreifen|dentist"),
        ("What was bought after the move?", "sofa"),
        ("What was repaired before the move?", "gutter"),
        ("What did we plant in May?", "tomatoes"),
        ("What was two days ago?", "boiler lost"),
        ("Was war am Montag?", "boiler lost"),
        ("Was war gestern?", "parcel|fuse"),
        ("Was war vor zwei Stunden?", "spare key"),
        ("Was war am Wochenende?", "pumpkins|Greta"),
        ("Que s'est-il passé lundi ?", "boiler lost"),
        ("Que s'est-il passé il y a deux heures ?", "spare key"),
        ("¿Qué pasó el lunes?", "boiler lost"),
        ("¿Qué pasó anteayer?", "boiler lost"),
        ("Che cosa è successo ieri?", "parcel|fuse"),
        ("O que aconteceu anteontem?", "boiler lost"),
        ("Wat gebeurde er eergisteren?", "boiler lost"),
        ("Wat gebeurde er op 15 oktober?", "notary"),
        ("前天发生了什么？", "boiler lost"),
        ("昨日何がありましたか", "parcel|fuse"),
        ("月曜日に何がありましたか", "boiler lost"),
    ],
    "lists and kinds": [
        ("Which pets does Lena have?", "tortoise"),
        ("Which pets does Omar have?", "parrot"),
        ("What animals live with Lena?", "tortoise"),
        ("What instruments does Lena play?", "cello"),
        ("Which sports does Omar do?", "climbing"),
        ("What hobbies does Lena have?", "pottery"),
        ("What furniture did Omar buy?", "sofa"),
        ("Which books has Omar read?", "novel"),
        ("Which relatives visited Lena?", "Greta"),
        ("What seafood did Omar eat?", "mussels"),
        ("What fruit did Lena's tortoise eat?", "strawberries"),
        ("Which movies did Lena watch?", "glaciers"),
        ("Why did Omar repair the gutter?", "because the rain"),
        ("Why did Lena sign up for a course?", "so that I see"),
        ("What made Omar repair something?", "because the rain"),
        ("Who was repairing the gutter?", "repaired the gutter"),
        ("What vegetables did we plant?", "tomatoes"),
        ("Which trees did we plant?", "fig tree"),
        ("What art course does Lena take?", "pottery"),
        ("What kind of soup did Lena cook?", "lentil"),
    ],
    "what replaced what": [
        ("Where is the car parked?", "level 5"),
        ("Is the car near the lift?", "level 5"),
        ("Who is our internet provider?", "Fjordlink"),
        ("Is Norrnet our internet provider?", "Fjordlink"),
        ("What is the meeting room called?", "Alder"),
        ("Where is the meeting room Birch?", "Alder"),
        ("What is the door code?", "9035"),
        ("Does the code 4471 open the door?", "9035"),
        ("What is Yara's job at the clinic?", "teaches"),
        ("Is Yara a nurse?", "teaches"),
    ],
    "words": [
        ("RAL 6021", "RAL6021"),
        ("Which wall has RAL 6021?", "RAL6021"),
        ("Who ran 10 km?", "10km"),
        ("Who ran 10k?", "10km"),
        ("⛵", "sailing"),
        ("When did I get ⛵️?", "sailing"),
        ("Wo ist das Schloss vom Fahrrad?", "Fahrradschloss"),
        ("Welches Gartentorschloss ist neu?", "Gartentor"),
        ("Woraus war der Kuchen zum Geburtstag?", "Geburtstagskuchen"),
        ("Wer hat die Reifen für den Winter montiert?", "Winterreifen"),
        ("Who lent the dirll?", "drill"),
        ("What did the elektrician promise?", "electrician"),
        ("Where is the sparre key?", "spare key"),
        ("How high is the gas metre?", "gas meter"),
        ("Who caved pumpkins?", "pumpkins"),
        ("What did the notray do?", "notary"),
        ("Which lighthose book was it?", "lighthouse"),
        ("What is in the fridge?", "!friday"),
        ("Who poted the parsel?", "parcel"),
        ("Pebble's strawberies", "strawberries"),
    ],
    "requests": [
        ("Can you give me a summary of the bakery so far?", "start a small bakery|bank approved|opens on"),
        ("Walk me through the bakery in order.", "start a small bakery"),
        ("In what order did I plan the bakery?", "start a small bakery|used oven"),
        ("Summarize our conversations about the loan.", "loan"),
        ("Throughout our conversations, which oven did I mention?", "used oven"),
        ("Did I ever name the bakery?", "Crumb and Co"),
        ("Can you list the different aspects of the bakery I mentioned?", "start a small bakery|used oven|Crumb"),
        ("Give me an overview of the bakery plans over time", "start a small bakery|bank approved|opens on"),
        ("Fass die Bäckerei zusammen: bakery", "bakery"),
        ("When does the bakery open, according to our chats?", "opens on"),
        ("Have I said how much the oven costs?", "900 euros"),
        ("What have I told you about the bank?", "bank approved"),
        ("Remind me of the name of the bakery", "Crumb"),
        ("Mention only three items about the bakery's money", "loan|900 euros"),
        ("Please recap what we discussed about the opening day", "opens on"),
    ],
}  # fmt: skip


def fill(memory: recollect.Memory) -> None:
    """Store the memory."""
    for number, line in enumerate(_MEMORY.strip().splitlines()):
        day, hour, author, text = line.split(" ", 3)
        name = author.rstrip(":")
        fields = {"role": "user"} if name == "user" else {"speaker": name}
        memory.remember(
            text,
            kind="conversation",
            conversation="bakery" if name == "user" else "home",
            session=day,
            position=number,
            time=datetime.fromisoformat(f"{day}T{hour}:00+00:00"),
            **fields,  # type: ignore[arg-type]
        )
    for old, new in _FACTS:
        record = memory.remember(old, time=datetime(2026, 4, 1, tzinfo=UTC))
        memory.supersede(record.id, new, at=datetime(2026, 9, 1, tzinfo=UTC), time=datetime(2026, 9, 1, tzinfo=UTC))


def asked(memory: recollect.Memory, k: int = 3) -> dict[str, list[tuple[str, bool, list[str]]]]:
    """Return for each section its questions, whether the answer is among the first hits, and these.

    What replaced a fact must be the first hit. An answer that begins with "!" must not be the reason of any hit.
    """
    out: dict[str, list[tuple[str, bool, list[str]]]] = {}
    for section, questions in QUESTIONS.items():
        for question, answer in questions:
            hits = memory.recall(question, k=1 if section == "what replaced what" else k, reference=NOW)
            texts = [hit.record.text for hit in hits]
            if answer.startswith("!"):
                right = all(word.like != answer[1:] for hit in hits for word in hit.why.words)
            else:
                right = any(part in text for part in answer.split("|") for text in texts)
            out.setdefault(section, []).append((question, right, texts))
    return out
