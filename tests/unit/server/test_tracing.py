"""Watchers of a served cluster do not stop it."""

import asyncio
import logging
import os
import threading
import time
from pathlib import Path
from typing import cast

import pytest

from coordinator_sim.server.control.feed import Feed
from coordinator_sim.server.tracing import CHUNK_BYTES, Tracing, WriteBehind
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent

INFO = RunInfo(trace_id="t", source=Source.WIRE, cluster_id="c", version="0", profile="4.4")


def test_trace_that_meets_a_bug_ends_and_holds_nobody_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What comes behind it is not recorded, and the log has one line."""
    tracing = Tracing(lambda: INFO, lambda: tmp_path)
    tracing.start(tmp_path / "trace")
    broken = TraceEvent(event=Event.JOIN_REQ, ts_us=cast("int", "no time"))
    with caplog.at_level(logging.ERROR):
        for _ in range(20):
            tracing.take((broken,))
        asyncio.run(tracing.stop())
    (record,) = caplog.records
    assert "ends here: TypeError" in record.getMessage()
    assert not tracing.view().recording


def test_disk_that_is_full_ends_the_trace_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever is served goes on; the log says why there is no trace, once."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    tracing = Tracing(lambda: INFO, lambda: tmp_path)
    directory = tmp_path / "trace"
    tracing.start(directory)
    (directory / "events").mkdir()
    (directory / "events" / "events.jsonl").symlink_to(full)
    with caplog.at_level(logging.ERROR):
        for number in range(10_000):
            tracing.take((TraceEvent(event=Event.JOIN_REQ, ts_us=number, group_id="g"),))
        asyncio.run(tracing.stop())
    (record,) = caplog.records
    assert "No space left on device" in record.getMessage()
    assert not (directory / "run.json").exists()


def test_whoever_is_faster_than_the_disk_waits_for_it(tmp_path: Path) -> None:
    """Every byte arrives in order, and the wait is counted."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = bytearray()

    def reader() -> None:
        with pipe.open("rb") as slow:
            time.sleep(0.2)
            read.extend(slow.read())

    thread = threading.Thread(target=reader)
    thread.start()
    behind = WriteBehind(chunks=1)
    file = behind.open(pipe)
    parts = [bytes([number]) * CHUNK_BYTES for number in range(5)]
    for part in parts:
        file.write(part)
    file.close()
    behind.end()
    thread.join()
    assert read == b"".join(parts)
    assert behind.stalls > 0


def test_nobody_is_kept_who_waited_too_long_for_the_feed() -> None:
    """A page that is open on an idle server costs nothing as time goes by."""

    async def story() -> Feed:
        feed = Feed()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await feed.changed()
        return feed

    assert asyncio.run(story())._waiting == []
