"""Where partitions without a committed offset begin."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.clients.config import ConsumerConfig, OffsetReset
from coordinator_sim.errors import ConfigError
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim.protocol.resources import TopicPartition

if TYPE_CHECKING:
    from tests.unit.clients.conftest import Desk

    MakeDesk = Callable[..., Desk]

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def _uncommitted(make_desk: "MakeDesk", reset: str) -> "Desk":
    """A consumer of both partitions; only the first has a committed offset."""
    desk = make_desk(auto_offset_reset=reset)
    desk.poll()
    desk.join()
    desk.sync_only(T0, T1)
    desk.reply(OffsetFetchRequest, desk.fetched(T0, missing=(T1,)))
    return desk


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_partition_without_an_offset_is_reset(make_desk: "MakeDesk", reset: str) -> None:
    """The driver is asked once; its answer is the position."""
    desk = _uncommitted(make_desk, reset)

    assert [(each.partitions, each.to.value) for each in desk.resets] == [((T1,), reset)]
    assert desk.port.positions == {T0: 10}
    desk.run(2_000)
    desk.do(desk.port.fetch_completed(2_000))
    desk.poll()
    assert len(desk.resets) == 1
    assert len(desk.of(OffsetFetchRequest)) == 1

    desk.do(desk.port.positions_found({T1: 7}, 2_000))
    assert desk.port.positions == {T0: 10, T1: 7}


def test_partition_without_an_offset_or_a_policy_ends_the_poll(make_desk: "MakeDesk") -> None:
    """`auto.offset.reset=none` raises, at this poll and at the next."""
    desk = _uncommitted(make_desk, "none")

    assert desk.returned == ["NoOffsetForPartitionException"]
    assert desk.resets == []
    assert desk.port.positions == {T0: 10}
    desk.poll()
    desk.reply(OffsetFetchRequest, desk.fetched(missing=(T1,)))
    assert desk.returned == ["NoOffsetForPartitionException"] * 2


def test_answer_for_a_partition_given_up_is_ignored(make_desk: "MakeDesk") -> None:
    """Assigned anew, it is asked for anew."""
    desk = _uncommitted(make_desk, "earliest")
    desk.do(desk.port.fetch_completed(0))
    desk.do(desk.port.enforce_rebalance(0))
    desk.poll()
    desk.do(desk.port.positions_found({T1: 7}, 0))
    desk.join(generation_id=2)
    desk.sync_only(T1)
    assert desk.port.positions == {}
    desk.reply(OffsetFetchRequest, desk.fetched(missing=(T1,)))

    assert [each.partitions for each in desk.resets] == [(T1,), (T1,)]


def test_seeking_to_an_end_asks_at_the_next_poll(make_desk: "MakeDesk") -> None:
    """A position is unknown between `seekToEnd` and the answer; one not assigned stays out."""
    desk = make_desk()
    desk.settle_stable(T0)
    desk.do(desk.port.fetch_completed(0))
    desk.port.seek_to([T0, T1], OffsetReset.LATEST)
    assert desk.port.positions == {}
    desk.poll()

    assert [(each.partitions, each.to) for each in desk.resets] == [((T0,), OffsetReset.LATEST)]
    assert len(desk.of(OffsetFetchRequest)) == 1


def test_seeking_an_offset_forgets_the_reset(make_desk: "MakeDesk") -> None:
    """What the application sets stands, whatever the driver finds later."""
    desk = _uncommitted(make_desk, "latest")
    desk.port.advance_position(T1, 3)
    desk.do(desk.port.positions_found({T1: 7}, 0))

    assert desk.port.positions == {T0: 10, T1: 3}
    assert len(desk.of(SyncGroupRequest)) == 1


def test_reset_policy_is_read_by_its_name() -> None:
    """Kafka's names in any letter case; others are refused."""
    assert ConsumerConfig().auto_offset_reset is OffsetReset.LATEST
    read = ConsumerConfig.from_settings({"auto.offset.reset": "Earliest"})
    assert read.auto_offset_reset is OffsetReset.EARLIEST
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset"):
        ConsumerConfig.from_settings({"auto.offset.reset": "middle"})
