"""Quotas in virtual time: the simulated network's connections are muted as served ones are."""

from coordinator_sim.broker.metadata.changes import QuotaSet
from coordinator_sim.connect.effects import StartReading
from tests.unit.sim.test_data_plane import Bench, put

EVERY_USER = (("user", None),)


def bench_with(key: str, value: float) -> Bench:
    """Two brokers with a topic and a quota of every user; a write before it has connected."""
    bench = Bench()
    bench.topic("t")
    bench.plane.carry_out(put(1, b"1"))
    bench.run(10)
    bench.world.cluster.change(QuotaSet(EVERY_USER, key, value))
    return bench


def test_writes_behind_one_over_its_quota_wait_for_the_throttle_time() -> None:
    """2 kB are answered at once; the write behind them is taken after 2 kB / 100 B/s - 10 s."""
    bench = bench_with("producer_byte_rate", 100.0)
    bench.plane.carry_out(put(2, b"x" * 2_000))
    assert [token for token, _, _ in bench.run(5)] == [2]
    bench.plane.carry_out(put(3, b"3"))
    assert bench.run(10_000) == []
    assert [token for token, _, _ in bench.run(2_000)] == [3]


def test_throttle_time_that_ends_while_the_broker_is_paused_starts_no_request() -> None:
    """The write that waited is appended when the broker goes on."""
    bench = bench_with("producer_byte_rate", 100.0)
    bench.plane.carry_out(put(2, b"x" * 2_000))
    bench.run(5)
    bench.plane.carry_out(put(3, b"3"))
    bench.run(5)
    log = bench.world.cluster.logs.log_of("t", 0)
    assert log is not None
    leader_id = bench.world.cluster.image.topics["t"].partitions[0].leader_id
    bench.run(10_000)
    bench.brokers.pause(leader_id, for_ms=1_500)
    bench.run(1_400)
    before = log.end_offset
    bench.run(1_000)
    assert (before, log.end_offset) == (2, 3)


def test_readers_over_their_quota_get_every_record_later() -> None:
    """Each batch of 1 kB fits the windows of 1.5 kB, and the next one waits."""
    bench = bench_with("consumer_byte_rate", 150.0)
    for token in range(2, 5):
        bench.plane.carry_out(put(token, b"x" * 1_000))
        bench.run(100)
    bench.plane.carry_out(StartReading("t"))
    bench.run(100)
    early = len(bench.values())
    bench.run(60_000)
    assert (early, len(bench.values())) == (2, 4)


def test_request_time_that_is_not_modelled_throttles_nobody() -> None:
    """Requests take no time in virtual time."""
    bench = bench_with("request_percentage", 0.000_001)
    for token in range(2, 20):
        bench.plane.carry_out(put(token, b"x"))
    assert len(bench.run(100)) == 18
