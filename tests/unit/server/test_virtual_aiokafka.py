"""The names that aiokafka reads time and chance through, turned to a virtual loop."""

import ast
import importlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator_sim.server.virtual_loop import VirtualLoop
from coordinator_sim.server.virtual_time import (
    CHANCE_TAKERS,
    TIME_READERS,
    UUID_MAKERS,
    aiokafka_in_virtual_time,
)

aiokafka = pytest.importorskip("aiokafka")

NOT_CLIENTS = ("protocol.message",)
"""Reads the time in a class for message formats that aiokafka no longer writes."""


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    """A loop that nobody runs."""
    loop = VirtualLoop()
    yield loop
    loop.close()


def importers_of(name: str) -> list[str]:
    """The modules of aiokafka that import that module of the standard library."""
    found = []
    root = Path(aiokafka.__file__).parent
    for path in sorted(root.rglob("*.py")):
        imported = [
            alias.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Import)
            for alias in node.names
        ]
        if name in imported:
            found.append(".".join(path.relative_to(root).with_suffix("").parts))
    return found


@pytest.mark.parametrize(
    ("name", "listed"),
    [("time", (*TIME_READERS, *NOT_CLIENTS)), ("random", CHANCE_TAKERS), ("uuid", UUID_MAKERS)],
)
def test_every_module_that_reads_the_world_is_listed(name: str, listed: tuple[str, ...]) -> None:
    """A release of aiokafka that reads a clock or chance elsewhere is noticed here."""
    assert importers_of(name) == sorted(listed)


def test_aiokafka_sees_virtual_time_and_then_the_real_one_again(loop: VirtualLoop) -> None:
    """Wall time begins at the epoch given, the monotonic clock is the loop's."""
    conn = importlib.import_module("aiokafka.conn")
    with aiokafka_in_virtual_time(loop, epoch_ms=1_700_000_000_000, seed=1):
        assert (conn.time.monotonic(), conn.time.time()) == (0.0, 1_700_000_000.0)
    assert conn.time is time


def test_equal_seeds_draw_alike(loop: VirtualLoop) -> None:
    """Shuffled brokers, random partitions and nonces come from the seed."""

    def drawn(seed: int) -> tuple[float, str]:
        client = importlib.import_module("aiokafka.client")
        conn = importlib.import_module("aiokafka.conn")
        with aiokafka_in_virtual_time(loop, epoch_ms=0, seed=seed):
            return client.random.random(), str(conn.uuid.uuid4())

    assert drawn(1) == drawn(1) != drawn(2)


def test_a_record_without_timestamp_gets_the_virtual_one(loop: VirtualLoop) -> None:
    """The compiled builder asks the operating system; one with a timestamp keeps it."""
    accumulator = importlib.import_module("aiokafka.producer.message_accumulator")
    with aiokafka_in_virtual_time(loop, epoch_ms=5_000, seed=1):
        builder = accumulator.BatchBuilder(1_000, 0)
        stamps = [
            builder.append(timestamp=given, key=b"k", value=b"v").timestamp for given in (None, 7)
        ]
        builder._set_producer_state(1, 0, 0)
    assert stamps == [5_000, 7]
