"""A load of recalls over nodes that die and join: what is in memory, what moves, and how long recalls take.

Sizes of namespaces have a heavy tail, their load is Zipf's, recalls arrive independently of each other. Each namespace
is asked at the node that rendezvous hashing names. A node has one core, serves in order, and caches the indexes of what
it was asked last within a budget. A recall whose index is missing loads it from the node's folder, if the node had it
before, or from the table that nodes share; an index of few records is always built.

Nodes begin as they are after a long time, without simulating that time: in a steady load, a node has what was used
last, and the time since a namespace was used is exponential (Fagin, Asymptotic miss ratios over independent
references, 1977). The result depends only on the load and its seed.

Left out: writes, records that are added, vectors, the waiting of the database, and clients that find out late that a
node is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recollect.sizing.cache import Cache, finished
from recollect.sizing.constants import cold_s, counted_bytes, recall_s
from recollect.sizing.hashing import Column, column, owners
from recollect.sizing.load import drawn, sizes_of, zipf
from recollect.sizing.phases import Load, Phase, Simulated, node_counts

#: Parts of a phase in which hits are counted.
WINDOWS = 60
#: The rate of hits is back once it is this near to that before the event.
NEAR = 0.01
#: Returns the number of the node of each namespace; see `hashing.owners`.
Placement = Callable[[Mapping[str, Column], Sequence[str], Sequence[str]], NDArray[np.int32]]


def simulate(load: Load, *, placed: Placement = owners) -> Simulated:
    """Return what becomes of a load.

    Args:
        placed: Says which node each namespace is asked at; tests pass one that moves more.

    Cost:
        A microsecond for each namespace and node, and half a microsecond for each recall: about 20 seconds for a
        million namespaces on 12 nodes with 5 million recalls.
    """
    return _Simulation(load, placed).run()


class _Node:
    """A node: the indexes in its memory, what is in its folder, and when its core is free."""

    def __init__(self, load: Load, nbytes: Sequence[int]) -> None:
        self.cache = Cache(load.index_bytes, nbytes)
        self.in_folder = np.zeros(load.namespaces, np.bool_)
        self.free_at = 0.0


class _Simulation:
    def __init__(self, load: Load, placed: Placement) -> None:
        self._load, self._placed = load, placed
        self._rng = np.random.Generator(np.random.PCG64(load.seed))
        self._shares = zipf(load.namespaces, load.zipf)
        self._sizes = sizes_of(load.records, load.namespaces, self._rng)
        if load.by_load:
            self._sizes = np.sort(self._sizes)[::-1].copy()
        self._nbytes = counted_bytes(self._sizes, load.text_chars).astype(np.int64)
        self._listed: list[int] = self._nbytes.tolist()
        self._recall_s = recall_s(self._sizes)
        counts = node_counts(load.nodes, load.events)
        # A node that joins is another one than those that died.
        joined = sum(max(0, after - before) for before, after in pairwise(counts))
        self._order = [f"http://node-{number}:8080" for number in range(load.nodes + joined)]
        names = [f"namespace {number}" for number in range(load.namespaces)]
        self._columns: dict[str, Column] = {each: column(each, names) for each in self._order}
        self._nodes = {number: _Node(load, self._listed) for number in range(load.nodes)}
        self._living = list(range(load.nodes))
        self._owners = self._placement()
        self._fill()

    def run(self) -> Simulated:
        load = self._load
        cached = sum(len(node.cache) for node in self._nodes.values())
        phases = [self._phase(0, "start", None, (0, 0, 0))]
        for number, event in enumerate(load.events, 1):
            moved = self._apply(node_counts(len(self._living), [event])[-1])
            phases.append(self._phase(number, event, phases[-1].hit_rate, moved))
        return Simulated(load=load, largest=int(self._sizes.max()), cached=cached, phases=tuple(phases))

    def _placement(self) -> NDArray[np.int32]:
        return self._placed(self._columns, [self._order[number] for number in self._living], self._order)

    def _fill(self) -> None:
        """Give each node what it has after a long time of the load."""
        load = self._load
        # Seconds since each namespace was last asked.
        ages = self._rng.exponential(size=load.namespaces) / (self._shares * load.recalls_per_s)
        for number, node in self._nodes.items():
            mine = np.flatnonzero(self._owners == number)
            newest = mine[np.argsort(ages[mine], kind="stable")]
            fit = int(np.searchsorted(np.cumsum(self._nbytes[newest]), load.index_bytes, side="right"))
            node.cache.use(newest[: max(1, fit)][::-1].tolist())
            node.in_folder[mine] = ages[mine] < load.folder_s

    def _apply(self, count: int) -> tuple[int, int, int]:
        """Let nodes die or join, and return how many namespaces moved: all, between living nodes, in memory."""
        before, were = self._owners, set(self._living)
        new = max(self._nodes) + 1
        while len(self._living) > count:
            self._living.pop(0)
        while len(self._living) < count:
            self._living.append(new)
            self._nodes[new] = _Node(self._load, self._listed)
            new += 1
        self._owners = self._placement()
        moved = before != self._owners
        both = [number for number in self._living if number in were]
        between = moved & np.isin(before, both) & np.isin(self._owners, both)
        hot = np.zeros_like(moved)
        for number in were:
            keys = self._nodes[number].cache.keys
            hot[keys] |= before[keys] == number
        return int(moved.sum()), int(between.sum()), int((moved & hot).sum())

    def _phase(self, number: int, event: str, rate_before: float | None, moved: tuple[int, int, int]) -> Phase:
        load, rng = self._load, self._rng
        count = max(1, int(rng.poisson(load.recalls_per_s * load.interval_s)))
        begun = number * load.interval_s
        arrivals = begun + np.sort(rng.random(count)) * load.interval_s
        asked = drawn(self._shares, count, rng)
        at = self._owners[asked]
        missed, service, latency = np.zeros(count, np.bool_), self._recall_s[asked], np.zeros(count)
        loads = dict.fromkeys(("built", "table", "file"), 0)
        cold, busy = 0.0, []
        for node_number in self._living:
            node, mine = self._nodes[node_number], np.flatnonzero(at == node_number)
            keys = asked[mine]
            absent = np.flatnonzero(node.cache.use(keys.tolist()))
            kinds = self._kinds(node, keys[absent])
            for kind, of_kind in kinds.items():
                extra = cold_s(kind, self._sizes[keys[absent[of_kind]]])
                service[mine[absent[of_kind]]] += extra
                loads[kind] += len(extra)
                cold += float(extra.sum())
            missed[mine[absent]] = True
            if len(mine):
                ends = finished(arrivals[mine], service[mine], node.free_at)
                latency[mine], node.free_at = ends - arrivals[mine], float(ends[-1])
            busy.append(float(service[mine].sum()) / load.interval_s)
        window = np.minimum(((arrivals - begun) / load.interval_s * WINDOWS).astype(np.int64), WINDOWS - 1)
        calls = np.bincount(window, minlength=WINDOWS)
        hits = np.bincount(window, weights=~missed, minlength=WINDOWS)
        rates = hits / np.maximum(calls, 1)
        half = WINDOWS // 2
        back = None if rate_before is None else np.flatnonzero(rates >= rate_before - NEAR)
        per_node = np.bincount(self._owners, minlength=len(self._order))[self._living]
        calls_per_node = np.bincount(at, minlength=len(self._order))[self._living]
        return Phase(
            event=event,
            nodes=len(self._living),
            namespaces_max_over_mean=float(per_node.max() / per_node.mean()),
            recalls_max_over_mean=float(calls_per_node.max() / calls_per_node.mean()),
            busiest=max(busy),
            moved=moved[0],
            moved_between_living=moved[1],
            moved_hot=moved[2],
            hit_rate_first=float(rates[0]),
            hit_rate=float(hits[half:].sum() / max(1, calls[half:].sum())),
            recovered_s=float(back[0] * load.interval_s / WINDOWS) if back is not None and len(back) else None,
            built_per_s=loads["built"] / load.interval_s,
            table_per_s=loads["table"] / load.interval_s,
            file_per_s=loads["file"] / load.interval_s,
            cold_cores=cold / load.interval_s,
            p50_ms=float(np.quantile(latency, 0.5) * 1000),
            p99_ms=float(np.quantile(latency, 0.99) * 1000),
            begun_s=begun,
            hit_rates=tuple(rates.tolist()),
        )

    def _kinds(self, node: _Node, keys: NDArray[np.int32]) -> dict[str, NDArray[np.int64]]:
        """Return the positions of keys by where their indexes come from, and put what is loaded into the folder."""
        large = self._sizes[keys] >= self._load.shared_from
        first = np.zeros(len(keys), np.bool_)
        first[np.unique(keys, return_index=True)[1]] = True
        from_table = large & first & ~node.in_folder[keys]
        node.in_folder[keys] = True
        kinds = {"built": ~large, "table": from_table, "file": large & ~from_table}
        return {kind: np.flatnonzero(of_kind) for kind, of_kind in kinds.items()}
