"""Where partitions without a committed offset begin."""

import pytest

from coordinator_sim.clients.config import ConsumerConfig, OffsetReset
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim_conformance.client_cases.bench import Bench, ConsumerBench

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def _uncommitted(reset: str, assignor: str = "range") -> ConsumerBench:
    """A consumer of both partitions; only the first has a committed offset."""
    consumer = Bench().consumer(assignors=(assignor,), auto_offset_reset=reset)
    consumer.poll()
    consumer.join(protocol_name=assignor)
    consumer.give(T0, T1)
    consumer.offsets({T0: 10, T1: -1})
    return consumer


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_partition_without_an_offset_is_reset(reset: str) -> None:
    """The driver is asked once; its answer is the position."""
    consumer = _uncommitted(reset)

    assert [(each.partitions, each.to.value) for each in consumer.resets] == [((T1,), reset)]
    assert consumer.port.positions == {T0: 10}
    consumer.run(2_000)
    consumer.do(consumer.port.fetch_completed(2_000))
    consumer.poll()
    assert len(consumer.resets) == 1
    assert len(consumer.sent(OffsetFetchRequest)) == 1

    consumer.do(consumer.port.positions_found({T1: 7}, 2_000))
    assert consumer.port.positions == {T0: 10, T1: 7}


def test_partition_without_an_offset_or_a_policy_ends_the_poll() -> None:
    """`auto.offset.reset=none` raises, at this poll and at the next."""
    consumer = _uncommitted("none")

    assert consumer.returned == ["NoOffsetForPartitionException"]
    assert consumer.resets == []
    assert consumer.port.positions == {T0: 10}
    consumer.poll()
    consumer.offsets({T1: -1})
    assert consumer.returned == ["NoOffsetForPartitionException"] * 2


def test_answer_for_a_partition_given_up_is_ignored() -> None:
    """Assigned anew, it is asked for anew."""
    consumer = _uncommitted("earliest")
    consumer.do(consumer.port.fetch_completed(0))
    consumer.do(consumer.port.enforce_rebalance(0))
    consumer.poll()
    consumer.do(consumer.port.positions_found({T1: 7}, 0))
    consumer.join(generation_id=2)
    consumer.give(T1)
    assert consumer.port.positions == {}
    consumer.offsets({T1: -1})

    assert [each.partitions for each in consumer.resets] == [(T1,), (T1,)]


def test_reset_of_a_partition_that_is_kept_is_asked_for_once() -> None:
    """A cooperative rebalance while the driver looks changes nothing about it."""
    consumer = _uncommitted("earliest", "cooperative-sticky")
    consumer.do(consumer.port.fetch_completed(0))
    consumer.do(consumer.port.enforce_rebalance(0))
    consumer.poll()
    consumer.join(generation_id=2, protocol_name="cooperative-sticky")
    consumer.give(T0, T1)
    consumer.do(consumer.port.positions_found({T1: 7}, 0))

    assert [each.partitions for each in consumer.resets] == [(T1,)]
    assert consumer.port.positions == {T0: 10, T1: 7}


def test_seeking_to_an_end_asks_at_the_next_poll() -> None:
    """A position is unknown between `seekToEnd` and the answer; one not assigned stays out."""
    consumer = Bench().consumer()
    consumer.idle()
    consumer.port.seek_to([T0, T1], OffsetReset.LATEST)
    assert consumer.port.positions == {}
    consumer.poll()

    assert [(each.partitions, each.to) for each in consumer.resets] == [((T0,), OffsetReset.LATEST)]
    assert len(consumer.sent(OffsetFetchRequest)) == 1


def test_seeking_an_offset_forgets_the_reset() -> None:
    """What the application sets stands, whatever the driver finds later."""
    consumer = _uncommitted("latest")
    consumer.port.advance_position(T1, 3)
    consumer.do(consumer.port.positions_found({T1: 7}, 0))

    assert consumer.port.positions == {T0: 10, T1: 3}
    assert len(consumer.sent(SyncGroupRequest)) == 1


def test_reset_policy_is_read_by_its_name() -> None:
    """Kafka's names in any letter case; others are refused."""
    assert ConsumerConfig().auto_offset_reset is OffsetReset.LATEST
    read = ConsumerConfig.from_settings({"auto.offset.reset": "Earliest"})
    assert read.auto_offset_reset is OffsetReset.EARLIEST
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset"):
        ConsumerConfig.from_settings({"auto.offset.reset": "middle"})
