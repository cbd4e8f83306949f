"""Metrics for Prometheus: requests, latencies, the memory of the store. No content and no id is ever in a label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from recollect.wire import Use

#: The type of the answer.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
GAUGE, COUNTER = "gauge", "counter"
_KINDS: dict[str, Any] = {GAUGE: GaugeMetricFamily, COUNTER: CounterMetricFamily}
_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
#: What clients name and no operation or action is, has this name in a label.
_OTHER = "other"


class Metrics:
    """Counts what a server does.

    Args:
        names: The names that labels may have: those of the operations and actions.
        facts: Returns numbers about the store, by name, with the kind (`GAUGE`, `COUNTER`) and a help text of each.
        indexes: Returns what is cached of each kind of index, by its name.
    """

    def __init__(
        self,
        names: frozenset[str],
        facts: Callable[[], dict[str, tuple[float, str, str]]] = dict,
        indexes: Callable[[], dict[str, Use]] = dict,
    ) -> None:
        self._names = names
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "recollect_requests_total",
            "Calls of clients, by door, operation and error code.",
            ("door", "operation", "error"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "recollect_request_seconds",
            "How long a call took, with the time that it waited for a thread.",
            ("door", "operation"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._waiting = Gauge("recollect_calls", "Calls that run or wait for a thread.", registry=self._registry)
        self._connections = Gauge(
            "recollect_connections", "Open connections, by door.", ("door",), registry=self._registry
        )
        self._registry.register(_Facts(facts, indexes))

    def served(self, door: str, name: str, seconds: float, code: str) -> None:
        """Count a call that has ended. See `server.calls.OnServed`."""
        known = name if name in self._names else _OTHER
        self._requests.labels(door, known, code).inc()
        self._seconds.labels(door, known).observe(seconds)

    def watch(self, calls: Callable[[], int], **connections: Callable[[], int]) -> None:
        """Report the number of calls that run, and of connections of each door."""
        self._waiting.set_function(calls)
        for door, count in connections.items():
            self._connections.labels(door).set_function(count)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class _Facts(Collector):
    """Numbers that are computed when they are asked for."""

    def __init__(
        self, facts: Callable[[], dict[str, tuple[float, str, str]]], indexes: Callable[[], dict[str, Use]]
    ) -> None:
        self._facts = facts
        self._indexes = indexes

    def collect(self) -> Iterator[Any]:
        for name, (value, kind, about) in self._facts().items():
            yield _KINDS[kind](f"recollect_{name}", about, value=value)
        indexes = self._indexes()
        for field, (name, about, kind) in _OF_INDEXES.items():
            family = kind(f"recollect_index_{name}", about, labels=["index"])
            for index, use in indexes.items():
                family.add_metric([index], getattr(use, field))
            yield family


#: Field of `Use` -> the name of the metric, its help text and its kind.
_OF_INDEXES: dict[str, tuple[str, str, Any]] = {
    "values": ("cached", "Number of cached indexes, by kind.", GaugeMetricFamily),
    "nbytes": ("bytes", "Memory of the cached indexes, by kind.", GaugeMetricFamily),
    "evicted": ("evictions", "Indexes that were evicted, by kind.", CounterMetricFamily),
    "started": ("builds", "Indexes that were derived from all records, by kind.", CounterMetricFamily),
    "caught_up": ("catch_ups", "How often an index was caught up with newer commits, by kind.", CounterMetricFamily),
}
