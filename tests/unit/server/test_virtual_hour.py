"""Unmodified aiokafka consumers through an hour of virtual time, and the same hour again."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from coordinator_sim.server.wire_record import Side, WireFrame, first_difference
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_pytest.stories import invariants_hold, no_commit_lost, no_double_ownership

pytest.importorskip("aiokafka")

ROOT = Path(__file__).resolve().parents[3]
TWENTY_MINUTES_S = 1_200
"""Long enough for a leave, a return, and a member that does not poll and is dropped."""

Played = tuple[tuple[WireFrame, ...], tuple[TraceEvent, ...]]


def an_hour(*options: str, hash_seed: int = 0) -> dict[str, Any]:
    """What one run in a process of its own came to."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.virtual_hour", "--fetch-wait", "30000", *options],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)},
    )
    hour: dict[str, Any] = json.loads(done.stdout)
    return hour


@cache
def twenty_minutes(seed: int, hash_seed: int) -> tuple[str, Played]:
    """Digest, frames and group events of the first twenty minutes, of a process of their own."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "frames"
        options = ("--until", str(TWENTY_MINUTES_S), "--seed", str(seed), "--frames", str(file))
        digest = an_hour(*options, hash_seed=hash_seed)["digest"]
        return digest, msgspec.msgpack.decode(file.read_bytes(), type=Played)


def test_an_hour_with_ten_rebalances_takes_seconds(tmp_path: Path) -> None:
    """Every record is consumed, no invariant is broken, and it costs 10 CPU-seconds at most."""
    file = tmp_path / "frames"
    hour = an_hour("--frames", str(file))
    _, events = msgspec.msgpack.decode(file.read_bytes(), type=Played)
    assert hour["virtual s"] >= 3_600
    assert hour["generations"] >= 10
    assert hour["consumed once or more"] == hour["produced"] == 718
    assert hour["cpu s"] <= 10
    invariants_hold(events)
    no_double_ownership(events, judged=10)
    no_commit_lost(events, judged=10)


def test_equal_seeds_give_equal_wire_digests_in_two_processes() -> None:
    """Equal seed and equal hash seed; another seed is another run."""
    one, _ = twenty_minutes(0, 0)
    again, _ = twenty_minutes.__wrapped__(0, 0)
    other, _ = twenty_minutes(6, 0)
    assert one == again != other


def test_what_differs_between_hash_seeds_is_the_clients_own() -> None:
    """The first frame that differs is a request; of the group only offsets' order is another.

    aiokafka iterates sets of partitions; the cluster iterates none.
    """
    _, (frames, events) = twenty_minutes(0, 0)
    _, (other_frames, other_events) = twenty_minutes(0, 1)
    index = first_difference(frames, other_frames)
    assert index is not None
    assert frames[index].side is other_frames[index].side is Side.CLIENT
    assert without_offsets(other_events) == without_offsets(events)


def without_offsets(events: tuple[TraceEvent, ...]) -> list[TraceEvent]:
    """What the coordinator told of the group itself, places in the trace apart."""
    of_offsets = (Event.OFFSET_COMMIT, Event.OFFSET_FETCH)
    return [
        msgspec.structs.replace(event, seq=-1) for event in events if event.event not in of_offsets
    ]
