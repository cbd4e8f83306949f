"""What the parameters of an address that are ours do, and which values are refused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.errors import InvalidArgumentError, ReadOnlyStoreError
from recollect.stores.postgres import store as store_module
from recollect.stores.postgres.address import parsed
from recollect.testing.postgres import PostgresServer, create_store

pytestmark = pytest.mark.postgres
HOST = "postgresql://ana:secret@db/memories"


@pytest.mark.parametrize("form", ["{0},{0}", "{0}?schema=team,{0}", "{0}?password=secret&pool=no"])
def test_two_addresses_are_refused_without_a_password(form: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        parsed(form.format(HOST))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "query",
    [
        "schema=Team",
        "schema=",
        "pool=0",
        "pool=many",
        "pgbouncer=yes",
        "replicated=2",
        "clock=0",
        "clock=-1",
        "clock=1.5",
        "pool=2&pool=3",
    ],
)
def test_a_wrong_parameter_is_refused_without_the_password(query: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        parsed(f"{HOST}?{query}")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("password", ["ge/heim", "ge?heim", "ge#heim", "ge@heim", "ge%zzheim", "ge[heim", "ge]heim"])
def test_a_password_that_is_not_percent_encoded_is_refused_and_not_shown(password: str) -> None:
    with pytest.raises(InvalidArgumentError, match="percent-encoded") as raised:
        parsed(f"postgresql://user:{password}@db/memories?host=/tmp")
    assert "heim" not in str(raised.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:ge%40heim@db/m",
        "postgresql://h1:1,h2:2/m?user=a@b",
        "postgresql://u@[::1]:5432/m",
        "postgresql:///m?host=/tmp/a@b",
    ],
)
def test_an_address_that_is_encoded_is_taken(address: str) -> None:
    assert "heim" not in parsed(address).shown


def test_the_folder_of_the_cache_may_be_relative_or_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parsed(f"{HOST}?cache=here").cache == parsed(f"{HOST}?cache=~/here").cache == str(tmp_path / "here")
    assert parsed(f"{HOST}?cache=").cache is None


def test_an_unknown_parameter_is_named(tmp_path: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="foo"):
        recollect.open("postgresql://u@db/m?foo=1")
    for wrong in ("postgresql:", "postgresql:/u:geheim@h/d"):
        with pytest.raises(InvalidArgumentError, match="begins with postgresql://") as raised:
            recollect.open(wrong)
        assert "geheim" not in str(raised.value)


@pytest.mark.parametrize("address", ["postgresql://u:geheim@h/d", Path("postgresql://u:geheim@h/d")])
def test_an_address_in_place_of_a_file_is_refused_without_its_password(address: Any, tmp_path: Any) -> None:
    for call in (recollect.rescue, recollect.restore):
        for given in ((address, tmp_path / "a.db"), (tmp_path / "a.db", address)):
            with pytest.raises(InvalidArgumentError, match="is an address") as raised:
                call(*given)
            assert "geheim" not in str(raised.value)


def test_parameters_of_ours_do_not_reach_libpq() -> None:
    found = parsed(f"{HOST}?schema=team&pool=3&pgbouncer=1&cache=/c&replicated=1&clock=5&sslmode=require")
    assert (found.schema, found.pool, found.pgbouncer, found.cache) == ("team", 3, True, "/c")
    assert (found.replicated, found.clock_s) == (True, 5)
    assert "sslmode=require" in found.conninfo
    assert not any(f"{name}=" in found.conninfo for name in ("schema", "pool", "pgbouncer", "cache", "replicated"))


def test_writes_are_refused_while_no_standby_must_confirm_if_the_address_says_so(tmp_path: Any) -> None:
    server = PostgresServer().start()
    try:
        address = f"{create_store(server.dsn)}&cache={tmp_path}"
        with (
            recollect.open(address, embedder="none") as memory,
            recollect.open(f"{address}&replicated=1", embedder="none") as strict,
        ):
            memory.remember("first")
            with pytest.raises(ReadOnlyStoreError, match="synchronous_standby_names is empty"):
                strict.remember("second")
            assert strict.count() == 1
            # No standby needs to be there for this setting: commits that ask for less do not wait.
            server.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby_a'")
            server.execute("ALTER SYSTEM SET synchronous_commit = 'local'")
            server.execute("SELECT pg_reload_conf()")
            with recollect.open(f"{address}&replicated=1", embedder="none", durability="normal") as other:
                other.remember("second")
            assert strict.count() == 2
    finally:
        server.stop()


def test_a_clock_that_is_far_off_refuses_writes_and_one_that_is_off_is_mentioned(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Clock:
        """The module `time`, whose clock is ahead."""

        ahead = 90.0

        def __getattr__(self, name: str) -> Any:
            return getattr(time, name)

        def time(self) -> float:
            return time.time() + self.ahead

    clock = Clock()
    monkeypatch.setattr(store_module, "time", clock)
    with recollect.open(address, embedder="none") as memory:
        with pytest.raises(ReadOnlyStoreError, match=r"differ by 90 s; .*clock=SECONDS"):
            memory.remember("note")
        assert memory.count() == 0
    with recollect.open(f"{address}&clock=100", embedder="none") as memory:
        memory.remember("note")
    clock.ahead = 5.0
    with recollect.open(address, embedder="none") as memory:
        memory.remember("another note")
    assert "differ by 5.0 s" in caplog.text
