"""Hostile frames without sockets: nothing crashes, nothing stays, a healthy client is served."""

import struct
from collections import Counter
from random import Random

import pytest

from tests.abuse.beside import Ordeal, make_cluster, rss_kb
from tests.abuse.hostile_frames import drawn_frame

SLOWEST_S = 5.0
"""A frame is worked on in milliseconds; a busy machine may stop for long in between."""
GROWTH_KB_A_FRAME = 2


def test_requests_are_drawn_of_all_apis_alike() -> None:
    """Those of share and streams groups as often as any; each can be encoded."""
    cluster, random = make_cluster(), Random(1)  # noqa: S311 - tests
    keys = [struct.unpack(">h", drawn_frame(random, cluster)[:2])[0] for _ in range(6_600)]
    counts = Counter(keys)
    assert counts.keys() == {int(api) for api in cluster.versions.ranges}
    assert max(counts.values()) < 2 * min(counts.values())


@pytest.mark.parametrize("frames", [30_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_hostile_frames_leave_a_healthy_client_alone(frames: int) -> None:
    """Spoilt requests end their connection at most, and nothing of them stays."""
    ordeal = Ordeal(seed=1)
    ordeal.run(frames // 10)
    before = rss_kb()

    ordeal.run(frames - frames // 10)

    assert ordeal.bugs == []
    assert ordeal.left == {"PendingAnswer": 0, "Connection": 2}
    assert ordeal.answers > frames // 10
    assert sum(ordeal.endings.values()) > frames // 10
    assert ordeal.slowest_frame[0] < SLOWEST_S
    assert ordeal.slowest_healthy_s < SLOWEST_S
    assert rss_kb() - before < GROWTH_KB_A_FRAME * frames
