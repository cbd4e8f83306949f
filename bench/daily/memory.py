"""The memory: chats with an assistant in English and Chinese, a group in English and German, and four documents.

Everything is made up. Each line of a chat is `author: text`; a day begins with its date.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

#: A user and their assistant, in English.
ASSISTANT = """
2026-03-02
user: Hi! I'm Priya, I run a small ceramics studio in Ghent with my partner Wout.
assistant: Nice to meet you, Priya. What can I help you with?
user: The kiln broke yesterday. It shows error E-42 when it reaches 900 degrees.
assistant: E-42 on that model usually means a worn thermocouple. I would replace it before checking the relays.
user: Okay, I ordered the thermocouple from Kerafix for 38 euros.
user: Please always give prices in euros.
assistant: Understood, prices in euros from now on.
2026-03-03
user: My landlord wants to raise the rent to 1450 a month from May.
assistant: In Flanders the rent can only be indexed once a year. Ask for the calculation in writing.
user: Good point. The contract started on 1 September 2023.
user: Where could I take my sister for dinner? She is visiting on Friday.
assistant: Try Brasserie Pakhuis, they have oysters and a quiet upstairs room.
user: She doesn't eat seafood. She is allergic to shellfish.
assistant: Then I suggest De Lieve instead: a vegetable menu, and they know how to handle allergies.
2026-03-04
user: The thermocouple arrived and the kiln is firing again.
user: I fired 64 bowls for the Leuven market, three of them cracked.
assistant: Three in 64 is under five percent, which is normal for thin bowls.
user: I need to renew my passport before the trip to Lisbon.
assistant: Book the appointment at the town hall early; it takes five working days.
2026-03-05
user: The appointment at the town hall is on Tuesday at 9:15.
user: What glaze should I use for the blue series?
assistant: For a stable blue I recommend a cobalt carbonate glaze at one percent, with a zinc-free base.
user: I mixed it, and the test tile came out too dark.
assistant: Halve the cobalt: 0.5 percent gives a softer blue.
2026-03-06
user: De Lieve was lovely. My sister Anjali wants to come back in June.
user: Wout has sold the old van to a baker from Aalst for 2100 euros.
user: The wifi password of the studio is terracotta-88.
assistant: Noted.
2026-03-07
user: The Leuven market moved to the 21st because of the storm warning.
user: I sold out of the speckled mugs, so I will make forty more next week.
assistant: Congratulations! Forty mugs need about fourteen kilos of clay.
"""

#: A family that renovates a house, in English and German.
HOUSE = """
2026-03-02
Mara: My sister said the boiler is at least twenty years old.
Tobias: I called the plumber, he can come on Thursday morning.
Jonas: Der Schornsteinfeger war da. Der Kamin braucht eine neue Abdeckung.
Mara: How much will that be?
Jonas: Etwa 400 Euro mit Einbau.
2026-03-03
Tobias: We need a permit for the skylight. I filled in form B7.
Mara: I found the receipt for the oak floor in the blue folder.
Jonas: Unsere Tochter Leonie hat am Samstag Geburtstag, sie wird sechs.
Tobias: What does she want?
Jonas: Ein rotes Fahrrad mit Klingel.
2026-03-04
Mara: The painter asks for 28 euros an hour.
Tobias: That's fine with me. He should start with the hallway.
Jonas: Ich habe die Fliesen für das Bad bestellt: RAL 6021, matt.
Mara: When do we move in?
Tobias: On the 14th of November, if the floor is done.
2026-03-05
Mara: The plumber says the pipes in the cellar are made of lead.
Tobias: Then they have to go, whatever it costs.
Jonas: Der Kühlschrank ist zu laut, ich rufe morgen den Kundendienst an.
2026-03-06
Jonas: Der Kundendienst kommt am Montag zwischen acht und zehn.
Mara: Nadia lent us her ladder, it is in the garage.
Tobias: I paid the plumber, 860 euros for the new pump.
2026-03-07
Tobias: The move is postponed to the 21st, the floor needs another week.
Mara: Leonie's party was wonderful, she rode the bike all afternoon.
Jonas: Das WLAN im neuen Haus schaltet die Telekom am 18. frei.
"""

#: A user and their assistant, in Chinese.
CHINESE = """
2026-03-02
user: 我叫林静，下个月要从上海搬到杭州工作。
assistant: 恭喜！新公司是做什么的？
user: 是一家做电动车电池的公司，叫绿源科技。
2026-03-03
user: 我女儿对花生过敏，学校食堂要特别注意。
assistant: 建议你把医生证明交给学校，并给老师一支肾上腺素笔。
2026-03-04
user: 搬家公司报价三千二百元，包括钢琴。
user: 房东让我月底之前交钥匙。
2026-03-05
user: 杭州的房子在西湖区文三路，离地铁站五分钟。
assistant: 那附近的黄龙站换乘很方便。
2026-03-06
user: 我妈妈下周三做白内障手术。
user: 推荐一家杭州的素菜馆吧。
assistant: 可以去灵隐寺旁边的天外天，素面很有名。
2026-03-07
user: 手术改到了周五上午，因为医生要出差。
"""

#: The folder of documents: path -> text.
DOCUMENTS = {
    "runbooks/redis.md": """# Redis runbook

## Failover

Promote the replica with `redis-cli failover`, then tell the team in the channel.

## Backups

Snapshots are kept for one week on the vault server.
""",
    "runbooks/postgres.md": """# Postgres runbook

## Failover

Patroni chooses a new leader by itself. Only check that the old one is fenced.

## Backups

Base backups every night, kept for thirty days. WAL is archived every minute.

## Upgrades

Major versions in the maintenance window on the first Sunday of the month.
""",
    "studio/kiln.md": """---
title: Kiln manual
tags: [studio, safety]
date: 2026-01-15
---

# Before firing

Check the seal of the door and the cone in the sitter.

# Cooling

Do not open the door above 120 degrees.

# Error codes

## E-42

The thermocouple does not answer.

## E-57

A relay is stuck: switch off the mains.
""",
    "haus/heizung.md": """# Heizung

## Entlüften

Zuerst die Pumpe ausschalten, dann jeden Heizkörper von unten nach oben entlüften.

## Druck

Der Druck soll zwischen 1,5 und 2 bar liegen. Nachfüllen am Hahn im Keller.

# Regenwasser

## Zisterne

Der Filter der Zisterne wird im Oktober gereinigt.
""",
}


def messages(chat: str) -> list[dict[str, Any]]:
    """Return the lines of a chat as messages: an author who is not a role is the name of a user."""
    out: list[dict[str, Any]] = []
    for line in chat.strip().splitlines():
        author, found, text = line.partition(": ")
        if not found:
            time = datetime.fromisoformat(f"{line}T09:00:00+01:00")
            continue
        time += timedelta(minutes=20)
        about = {"role": author} if author in ("user", "assistant") else {"role": "user", "name": author}
        out.append({**about, "content": text, "timestamp": time.isoformat()})
    return out


def write_documents(folder: Path) -> None:
    """Write the documents below a folder."""
    for name, text in DOCUMENTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
