"""Hostile frames without sockets: nothing crashes, nothing stays, a healthy client is served."""

from tests.abuse.beside import Ordeal, rss_kb

FRAMES = 100_000
SLOWEST_S = 5.0
"""A frame is worked on in milliseconds; a busy machine may stop for long in between."""
GROWTH_KB = 200_000


def test_hostile_frames_leave_a_healthy_client_alone() -> None:
    """Spoilt requests end their connection at most, and nothing of them stays."""
    ordeal = Ordeal(seed=1)
    ordeal.run(FRAMES // 10)
    before = rss_kb()

    ordeal.run(FRAMES - FRAMES // 10)

    assert ordeal.bugs == []
    assert ordeal.left == {"PendingAnswer": 0, "Connection": 2}
    assert ordeal.answers > FRAMES // 10
    assert sum(ordeal.endings.values()) > FRAMES // 10
    assert ordeal.slowest_frame[0] < SLOWEST_S
    assert ordeal.slowest_healthy_s < SLOWEST_S
    assert rss_kb() - before < GROWTH_KB
