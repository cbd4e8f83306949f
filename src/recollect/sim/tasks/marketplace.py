"""A marketplace: buyers send `buy:PRODUCT:PRICE`, sellers answer `sold:PRODUCT:PRICE` or `reject:PRODUCT:COUNTER`.

A seller sells each product once. It keeps its price list and what it sold in memory, so that a crash does not make it
sell twice. A buyer looks up what a seller wanted before it offers, and notes its offers. A suffix `|sig:...` of a
message is ignored.
"""

from __future__ import annotations

from recollect.sim.agents import Agent, AgentContext
from recollect.sim.dice import below, between, pick
from recollect.sim.tasks.base import Seat, Task, count_in

#: Ticks after which a buyer no longer waits for an answer.
_PATIENCE = 20


def parse(payload: bytes) -> tuple[str, str, int] | None:
    """Return verb, product and price of a message; None if it has another form.

    >>> parse(b"buy:product-0:50|sig:ab12"), parse(b"buy:product-0")
    (('buy', 'product-0', 50), None)
    """
    text = payload.decode("utf-8", "replace")
    if "|sig:" in text:
        text = text.rpartition("|sig:")[0]
    parts = text.split(":")
    if len(parts) != 3 or not (parts[2].isascii() and parts[2].isdigit() and len(parts[2]) < 10):
        return None
    return parts[0], parts[1], int(parts[2])


class Buyer(Agent):
    """Makes offers, one at a time."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._left = seat.settings["rounds"]
        self._offers = 0
        self._open = ""  # the product of the offer that waits for an answer

    async def on_start(self, ctx: AgentContext) -> None:
        """Plan the first offer."""
        await ctx.schedule(between(ctx.rng, 1, 5), b"next")

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Take an answer and make the next offer, or give up waiting."""
        if sender == ctx.agent_id:
            if payload == b"next" or payload == b"late %d" % self._offers:
                await self._offer(ctx)
            return
        answer = parse(payload)
        if answer is None or answer[0] not in ("sold", "reject") or answer[1] != self._open:
            return
        self._open = ""
        verb, product, price = answer
        if verb == "sold":
            await ctx.memory.write(f"bought:{ctx.agent_id}:{self._offers}", ctx.stamp(f"{price} for {product}"))
        await ctx.schedule(between(ctx.rng, 1, 3), b"next")

    async def _offer(self, ctx: AgentContext) -> None:
        sellers = self._seat.peers.get("seller", ())
        if not sellers or self._left <= 0:
            return
        self._left -= 1
        self._offers += 1
        seller, product = pick(ctx.rng, sellers), f"product-{below(ctx.rng, self._seat.settings['catalog_size'])}"
        wanted = count_in(await ctx.memory.read(f"price:{seller}:{product}"))
        if ctx.memory.can_recall:
            await ctx.memory.recall(f"price of {product}", 3)
        price = wanted or between(ctx.rng, 10, 100)
        self._open = product
        await ctx.memory.write(f"offer:{ctx.agent_id}:{self._offers}", ctx.stamp(f"{price} to {seller} for {product}"))
        await ctx.send(seller, f"buy:{product}:{price}".encode())
        await ctx.schedule(_PATIENCE, b"late %d" % self._offers)


class Seller(Agent):
    """Answers each offer."""

    def __init__(self, seat: Seat) -> None:
        self._least = 10 + 5 * seat.index % 50
        self._sold: set[str] = set()

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Sell, or reject and say what it would take."""
        offer = parse(payload)
        if offer is None or offer[0] != "buy":
            return
        _, product, price = offer
        key = f"sold:{ctx.agent_id}:{product}"
        if product in self._sold or await ctx.memory.read(key) is not None:
            await ctx.send(sender, f"reject:{product}:{self._least}".encode())
        elif price < self._least:
            await ctx.memory.write(f"price:{ctx.agent_id}:{product}", ctx.stamp(f"{self._least} for {product}"))
            await ctx.send(sender, f"reject:{product}:{self._least}".encode())
        else:
            self._sold.add(product)
            await ctx.memory.write(key, ctx.stamp(f"{price} from {sender} for {product}"))
            await ctx.send(sender, f"sold:{product}:{price}".encode())


def _make(seat: Seat) -> Agent:
    return Buyer(seat) if seat.role == "buyer" else Seller(seat)


TASK = Task(
    make=_make,
    roles={"buyer": 1, "seller": 1},
    settings={"rounds": (10, 0), "catalog_size": (200, 1)},
)
