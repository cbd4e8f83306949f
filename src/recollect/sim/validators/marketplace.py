"""The validators of the marketplace: buyers ask, sellers answer, and both keep to what they said."""

from __future__ import annotations

from typing import NamedTuple

from recollect.sim.validators.checks import TraceCheck, Validation
from recollect.sim.validators.events import TraceEvent
from recollect.sim.validators.history import MemoryHistory


class _Said(NamedTuple):
    verb: str
    product: str
    price: int | str | None


class _Deal(NamedTuple):
    buyer: str
    seller: str
    product: str


def _said(event: TraceEvent) -> _Said | None:
    """Return what a message says; None if it is none of a marketplace."""
    if event.kind != "send":
        return None
    verb, *rest = event.message.rsplit("|sig:", 1)[0].split(":")
    if verb not in ("buy", "sold", "reject") or not rest or (verb == "buy" and len(rest) < 2):
        return None
    return _Said(verb, rest[0], _price(rest[1]) if len(rest) > 1 else None)


def _price(text: str) -> int | str:
    try:
        return int(text)  # so that 50 and 050 are one price
    except ValueError:
        return text


def _deal(event: TraceEvent, said: _Said) -> _Deal:
    buyer, seller = (event.agent, event.to) if said.verb == "buy" else (event.to, event.agent)
    return _Deal(buyer, seller, said.product)


class NoDoubleSell(TraceCheck):
    """No seller sells one product to two buyers."""

    name = "marketplace_no_double_sell"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._buyers: dict[tuple[str, str], list[str]] = {}

    def see(self, event: TraceEvent) -> None:
        said = _said(event)
        if said is None or said.verb != "sold" or said.price is None:
            return
        deal = _deal(event, said)
        buyers = self._buyers.setdefault((deal.seller, deal.product), [])
        if deal.buyer not in buyers:
            buyers.append(deal.buyer)
            if len(buyers) > 1:
                self.fault(f"{deal.seller} sold {deal.product} to {buyers[0]} and to {deal.buyer}")

    def checked(self) -> str:
        return f"{len(self._buyers)} products sold, each to one buyer"


class AllResponded(TraceCheck):
    """Every buy request has an answer from its seller."""

    name = "marketplace_all_responded"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._asked: set[_Deal] = set()
        self._answered: set[_Deal] = set()

    def see(self, event: TraceEvent) -> None:
        said = _said(event)
        if said is not None:
            (self._asked if said.verb == "buy" else self._answered).add(_deal(event, said))

    def checked(self) -> str:
        return f"all {len(self._asked)} buy requests answered"

    def verdict(self) -> Validation:
        unanswered = len(self._asked - self._answered)
        detail = f"{unanswered} unanswered buy requests" if unanswered else self.checked()
        return Validation(self.name, not unanswered, detail)


class PriceAgreement(TraceCheck):
    """A price sold was offered by the buyer, or by the seller with a reject, before."""

    name = "marketplace_price_agreement"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._offers: dict[_Deal, list[int | str]] = {}
        self._sold = 0

    def see(self, event: TraceEvent) -> None:
        said = _said(event)
        if said is None or said.price is None:
            return
        deal = _deal(event, said)
        if said.verb != "sold":
            self._offers.setdefault(deal, []).append(said.price)
            return
        self._sold += 1
        offers = self._offers.get(deal)
        if offers is None:
            self.fault(f"{deal.seller} sold {deal.product} to {deal.buyer} without an offer")
        elif said.price not in offers:
            known = ", ".join(str(offer) for offer in dict.fromkeys(offers))
            self.fault(
                f"{deal.seller} sold {deal.product} to {deal.buyer} at {said.price}, but the offers were {known}"
            )

    def checked(self) -> str:
        return f"{self._sold} prices sold, each offered before"
