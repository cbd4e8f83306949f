"""`python -m bench`: the speed of Recollect on this machine, compared with peers. Run from the root of the repository.

    python -m bench                     start-up, writes and recall at 10,000 records, in short
    python -m bench recall --records 100000 --peers fts5,bm25s --json
    python -m bench conversations --records 100000 --json
    python -m bench write --json        one write compared with the bare disk, bulk writes, eight threads
    python -m bench bulk --records 1000000 --json    one bulk write in one call: its rate and memory, and a tenth of it
    python -m bench open --records 100000 --json
    python -m bench sdr --records 100000 --json
    python -m bench vectors --records 100000 --json
    python -m bench poison --bytes 1048576 --json
    python -m bench poisoning --policy off --json    what of 120 attacks reaches a prompt
    python -m bench trust --json                     what classes of origin cost
    python -m bench encryption --json                an encrypted store, compared with a plain one
    python -m bench branches --json                  branches, their first write and merges, in durable commits
    python -m bench bisect --json                    the search of the commit that changed an answer
    python -m bench repeats --bytes 65536 --json
    python -m bench mcp --json
    python -m bench serve --json        calls over a socket and HTTP, compared with this process; 1, 8, 64 clients
    python -m bench inspector --json    the search page of the inspector, compared with a recall; sizes of pages
    python -m bench past --records 100000 --json
    python -m bench history --records 1000000 --json
    python -m bench manager --json      what the manager adds to a write, and consolidation of 10,000 records
    python -m bench glossary --json     recall and annotate of a glossary, and how annotate grows
    python -m bench outline --json      an outline of 50,000 nodes: ingest, one changed line, look-ups
    python -m bench swarm --json        1,000 agents doing 1,000,000 operations of keyed memory, and its recall
    python -m bench cluster --json      two workers against one; 1,000 agents on one node; what a server adds to a call
    python -m bench outage --json       a node and the primary are killed under load (make demo-cluster)
    python -m bench cold --json         the first recall of a new node on PostgreSQL: from its file, shared, built
    python -m bench postgres --json     the PostgreSQL store beside the SQLite store: round trips, calls, threads, bytes
    python -m bench sizes --json        bytes and processor time of a record on PostgreSQL, for `recollect size`
    python -m bench growth --json       bytes of the file for each write, and what a compaction gives back
    python -m bench traces --json       what traces add to a recall, without an SDK and with one
    python -m bench stalls --json       the longest recalls in ten minutes of mixed load
    python -m bench namespaces, pauses, filters, catch-up, feed, once, plot, all

Texts come from the files of this machine (`bench.corpus`). Stores, texts and environments of peers are cached in the
user's cache folder, or in RECOLLECT_BENCH_CACHE. Every process is pinned to one core. docs/benchmarks.md describes the
measurements.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.measuring import ROOT, THREAD_VARIABLES, milliseconds, one_core, shown, versions
from bench.peers import PEERS, PeerMissingError
from bench.poisoning import POLICIES

#: The peers of `once`, and the parts of `cluster`.
ONCE = ("qdrant", "chromadb", "lancedb", "langgraph", "mem0")
CLUSTER_PARTS = ("workers", "agents", "server")


def start_up() -> dict[str, float]:
    """From process start: Python itself, importing the package, and one answer of the command on a small file."""
    import recollect
    from bench.corpus import corpus

    def of(*arguments: str) -> float:
        command = [sys.executable, *arguments]
        run = lambda: subprocess.run(command, check=True, cwd=ROOT, capture_output=True)  # noqa: E731
        return statistics.median(milliseconds(run) for _ in range(7))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.db"
        with recollect.open(path) as memory:
            memory.remember_all(corpus().texts(200))
        return {
            "python_ms": of("-c", ""),
            "import_ms": of("-c", "import recollect"),
            "command_recall_ms": of("-m", "recollect", "--db", str(path), "recall", "the value of a file"),
        }


def summary(records: int) -> dict[str, Any]:
    """The short form: what `make bench` prints."""
    from bench.recall import recalls
    from bench.writing import writes

    found = {
        "command": "summary",
        "start-up": start_up(),
        "write": writes(bulk=5000),
        "recall": recalls(records, ["fts5", "fts5_content"], 60),
    }
    for part in ("write", "recall"):
        for known in ("command", "versions", "distinct_sentences", "corpus"):
            del found[part][known]  # type: ignore[attr-defined]
    return {**found, "versions": versions()}


#: Command -> the function that measures it, and which arguments it takes. A module is imported when it is asked for:
#: some need libraries that others do not.
MEASURES = {
    "recall": ("recall.recalls", "records peers questions corpus namespaces"),
    "conversations": ("conversations.conversations", "records questions"),
    "write": ("writing.writes", "records"),
    "bulk": ("bulk.bulk", "records"),
    "open": ("opening.openings", "records runs"),
    "cost": ("cost.cost", "other pairs"),
    "foreign": ("foreign.foreign", "records"),
    "namespaces": ("namespaces.many_namespaces", "namespaces"),
    "pauses": ("pauses.pauses", "records"),
    "stalls": ("stalls.stalls", "records seconds"),
    "filters": ("filtering.filters", "records questions"),
    "catch-up": ("catching_up.catching_up", "records"),
    "feed": ("feed.feeds", "listeners"),
    "sdr": ("sdrs.sdrs", "records questions"),
    "sdr-encoders": ("sdr_encoders.sdr_encoders", "records questions"),
    "vectors": ("vectors.vectors", "records questions"),
    "poison": ("poison.poison", "bytes"),
    "poisoning": ("poisoning.poisoning", "policy"),
    "trust": ("trust.trust", "pairs"),
    "encryption": ("encryption.encryption", "records pairs"),
    "branches": ("branches.branches", "records"),
    "bisect": ("bisecting.bisecting", "commits"),
    "repeats": ("repeats.repeats", "bytes"),
    "mcp": ("mcp.mcp", "records questions"),
    "inspector": ("inspector.inspector", "records questions"),
    "serve": ("serve.serve", "records questions"),
    "past": ("past.pasts", "records questions"),
    "history": ("history.histories", "records"),
    "manager": ("manager.measured", "records"),
    "glossary": ("glossary.measured", "records"),
    "outline": ("outline.measured", "records"),
    "cold": ("cold.measured", "records"),
    "cluster": ("cluster.measured", "parts namespaces"),
    "outage": ("outage.measured", ""),
    "postgres": ("postgres.measured", "records"),
    "sizes": ("sizes.measured", "records"),
    "traces": ("traces.traces", "records questions"),
    "growth": ("growth.growth", "records writes"),
    "swarm": ("swarm.measured", "records agents operations one"),
    "once": ("once.once", "records peers"),
}


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """The result of a command."""
    if arguments.command in MEASURES:
        place, names = MEASURES[arguments.command]
        module, _, function = place.partition(".")
        measure: Callable[..., dict[str, Any]] = getattr(importlib.import_module(f"bench.{module}"), function)
        return measure(*(getattr(arguments, name) for name in names.split()))
    if arguments.command == "plot":
        from bench.plotting import plot

        return {"written": [str(path) for path in plot(arguments.results, arguments.out)]}
    if arguments.command == "all":
        from bench.corpus import cache_folder
        from bench.everything import everything

        folder = arguments.out or cache_folder() / "results"
        return {"results": str(folder), "failed": everything(folder, arguments.large)}
    return summary(arguments.records)


def _positive(text: str) -> int:
    """Read a number of which there is at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _existing(text: str) -> Path:
    """Read the path of a file or folder that exists."""
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{text} does not exist")
    return path


def _named(known: Iterable[str], what: str) -> Callable[[str], list[str]]:
    """What reads names of these, with commas between."""

    def read(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = sorted({*names} - {*known})
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: {what} are {', '.join(known)}")
        return names

    return read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--records", type=_positive, default=10_000)
    parser.add_argument("--json", action="store_true", help="print one JSON document, and nothing else, on stdout")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, help_: str, records: int | None, questions: int | None = None) -> argparse.ArgumentParser:
        out = commands.add_parser(name, help=help_)
        out.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
        if records is not None:
            out.add_argument("--records", type=_positive, default=records)
        if questions is not None:
            out.add_argument("--questions", type=_positive, default=questions)
        return out

    recall = command("recall", "recall, compared with peers", 100_000, 200)
    recall.add_argument("--peers", type=_named(PEERS, "peers"), default=list(PEERS), metavar="NAME,...")
    recall.add_argument("--corpus", choices=("sentences", "conversations"), default="sentences", help="the records")
    recall.add_argument(
        "--namespaces", type=_positive, default=1, metavar="N", help="spread conversations over so many, without peers"
    )
    command("conversations", "recall over turns of conversations, compared with independent records", 100_000, 200)
    command("write", "durable writes, compared with the bare disk; --records: of the bulk write", 20_000)
    command("bulk", "a bulk write in one call, and one of a tenth: rate and memory", 1_000_000)
    opening = command("open", "opening to the first answer, and memory", 100_000)
    opening.add_argument("--runs", type=_positive, default=7, help="maximum number of runs; fewer if they are slow")
    cost = command("cost", "what a recall, a remember and opening cost, compared with another checkout", None)
    cost.add_argument("other", metavar="PYTHON", help="the Python of the other checkout's environment")
    cost.add_argument("--pairs", type=_positive, default=20)
    command("foreign", "opening a store that another SQLite has written", 100_000)
    command("namespaces", "one of many namespaces", None).add_argument("--namespaces", type=_positive, default=10_000)
    command("pauses", "the longest call among mixed writes", 100_000)
    stalls = command("stalls", "the longest recalls while others write", 100_000)
    stalls.add_argument("--seconds", type=_positive, default=600)
    command("filters", "recall with filters", 100_000, 100)
    command("catch-up", "what a commit of another process costs a reader", 100_000)
    feed = command("feed", "listeners on as many namespaces: threads, views and latencies", None)
    feed.add_argument("--listeners", type=_positive, default=1000)
    command("sdr", "the best of many SDRs, compared with reading all their rows", 100_000, 100)
    command("sdr-encoders", "how well SDRs find, by which bits are kept", 5_000, 400)
    command("vectors", "the exact scan of vectors, compared with reading them all", 100_000, 50)
    poison = command("poison", "the most expensive texts, compared with plain words of as many bytes", None)
    poison.add_argument("--bytes", type=_positive, default=2**20)
    attacks = command("poisoning", "attacks by what is stored: what of them reaches a prompt, and as whose word", None)
    attacks.add_argument("--policy", type=_named(POLICIES, "policies"), default=["off"], metavar="NAME,...")
    classes = command("trust", "what classes of origin cost when records are written, and a taint", None)
    classes.add_argument("--pairs", type=_positive, default=10)
    command("branches", "branches, their first write and merges, in durable commits of the same run", 20_000)
    searching = command("bisect", "the search of the commit that changed an answer", None)
    searching.add_argument("--commits", type=_positive, default=10_000)
    encrypting = command("encryption", "an encrypted store, compared with a plain one", 20_000)
    encrypting.add_argument("--pairs", type=_positive, default=12)
    repeated = command("repeats", "inputs that repeat one kind of token: how their cost grows, at every call", None)
    repeated.add_argument("--bytes", type=_positive, default=2**16)
    command("mcp", "calls of the MCP server, compared with this process, and its start", 10_000, 200)
    command(
        "serve", "calls of the server, compared with this process, and requests a second of its clients", 10_000, 400
    )
    command("inspector", "the search page of the inspector, compared with its recall, and sizes of pages", 100_000, 200)
    command("past", "recall as of a past moment, compared with the present", 100_000, 100)
    command("manager", "what the manager adds to a write, and how long consolidation takes", 10_000)
    command("glossary", "recall and annotate of the terms of an agent, and how annotate grows", 10_000)
    command("outline", "an outline: ingest, ingest of one changed line, look-ups", 50_000)
    command("history", "snapshots, differences and rollbacks of few changes among many records", 100_000)
    swarming = command("swarm", "agents in one process on one keyed memory, and the compatible recall", 10_000)
    swarming.add_argument("--agents", type=_positive, default=1000)
    swarming.add_argument("--operations", type=_positive, default=1_000_000)
    swarming.add_argument("--one", action="store_true", help="only these agents, in this process")
    clusters = command("cluster", "two workers against one, many agents on one node, and what a server adds", None)
    clusters.add_argument("--part", dest="parts", choices=CLUSTER_PARTS, action="append", help="default: all of them")
    clusters.add_argument("--namespaces", type=_positive, default=10_000, help="those of the part agents")
    command("outage", "a node and the primary are killed under load", None)
    command("cold", "the first recall of a new node on PostgreSQL: from its file, the shared table, built", 100_000)
    command("postgres", "the PostgreSQL store, compared with the SQLite store", 20_000)
    command("sizes", "bytes in PostgreSQL and in a node, and processor time, for `recollect size`", 100_000)
    command("traces", "a recall that is traced, compared with one that is not", 20_000, 150)
    growing = command("growth", "what the file grows by with each write", 10_000)
    growing.add_argument("--writes", type=_positive, default=120_000)
    once = command("once", "peers in separate environments", 10_000)
    once.add_argument("--peers", type=_named(ONCE, "peers"), default=list(ONCE), metavar="NAME,...")
    drawing = command("plot", "latency, memory and writes of results, as SVG", None)
    drawing.add_argument(
        "results", type=_existing, nargs="+", metavar="RESULTS", help="files of --json, or folders of them"
    )
    drawing.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    every = command("all", "all of it at 10,000 and 100,000 records, into JSON files", None)
    every.add_argument("--large", action="store_true", help="also at 1,000,000 records (much longer, and some GB)")
    every.add_argument("--out", type=Path, metavar="FOLDER", help="default: results in the cache folder")
    return parser


def main() -> None:
    arguments = _parser().parse_args()
    one_core()
    try:
        result = measured(arguments)
    except PeerMissingError as missing:
        sys.exit(str(missing))
    print(json.dumps(result, indent=2) if arguments.json else "\n".join(shown(result)))


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREAD_VARIABLES):
        # Before NumPy is loaded, which asks once: the process is replaced by one that has them.
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
        # An installed package has its bytecode; without it each process that is measured would compile the source.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.execv(sys.executable, [sys.executable, "-m", "bench", *sys.argv[1:]])
    main()
