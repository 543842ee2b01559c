"""Those who watch a served cluster do not stop it."""

import asyncio
import logging
from pathlib import Path
from typing import cast

import pytest

from coordinator_sim.server.control.feed import Feed
from coordinator_sim.server.tracing import Tracing
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent


def test_trace_that_meets_a_bug_ends_and_holds_nobody_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The buffer is emptied all the same, and the log has one line."""
    info = RunInfo(trace_id="t", source=Source.WIRE, cluster_id="c", version="0", profile="4.4")
    tracing = Tracing(lambda: info, lambda: tmp_path, buffered=1)
    tracing.start(tmp_path / "trace")
    broken = TraceEvent(event=Event.JOIN_REQ, ts_us=cast("int", "no time"))
    with caplog.at_level(logging.ERROR):
        for _ in range(20):
            tracing.take((broken,))
        asyncio.run(tracing.stop())
    (record,) = caplog.records
    assert "ends here: TypeError" in record.getMessage()
    assert not tracing.view().recording


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
