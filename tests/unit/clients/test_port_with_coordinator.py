"""Client ports against the real GroupCoordinator, in one virtual time."""

from typing import TYPE_CHECKING

from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest

if TYPE_CHECKING:
    from tests.unit.clients.conftest import World


def _owned(world: "World") -> list[TopicPartition]:
    return sorted(tp for m in world.members.values() if m.alive for tp in m.port.owned_partitions)


def _all(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, p) for p in range(count)]


def test_three_consumers_share_all_partitions(make_world: "type[World]") -> None:
    """Three eager consumers that start together end in one generation with two partitions each."""
    world = make_world({"t": 6})
    members = [world.consumer(name) for name in ("a", "b", "c")]

    world.run(10_000)

    assert _owned(world) == _all("t", 6)
    assert [len(m.port.owned_partitions) for m in members] == [2, 2, 2]
    assert {m.port.state for m in members} == {MemberState.STABLE}
    assert len({m.port.generation_id for m in members}) == 1
    assert not any(m.errors for m in members)


def test_leaver_hands_over_at_once(make_world: "type[World]") -> None:
    """A consumer that closes leaves the group, and the others take over within a heartbeat."""
    world = make_world({"t": 6})
    a, b, c = (world.consumer(name) for name in ("a", "b", "c"))
    world.run(10_000)

    world.close(c)
    world.run(14_000)

    assert _owned(world) == _all("t", 6)
    assert len(a.port.owned_partitions) == len(b.port.owned_partitions) == 3
    assert [
        r.members[0].reason for _, _, r in world.requests if isinstance(r, LeaveGroupRequest)
    ] == ["the consumer is being closed"]
    assert c.callbacks(CallbackKind.PARTITIONS_REVOKED)[-1] == tuple(
        TopicPartition("t", p) for p in (4, 5)
    )


def test_crashed_member_is_replaced_after_its_session(make_world: "type[World]") -> None:
    """A crashed consumer's partitions are unowned until its session times out."""
    world = make_world({"t": 6})
    a, b, c = (world.consumer(name, session_timeout_ms=10_000) for name in ("a", "b", "c"))
    world.run(10_000)

    world.crash(c)
    world.run(16_000)
    assert len(_owned(world)) == 4
    world.run(24_000)

    assert _owned(world) == _all("t", 6)
    assert len(a.port.owned_partitions) == len(b.port.owned_partitions) == 3


def test_cooperative_handover_keeps_what_stays(make_world: "type[World]") -> None:
    """A joining cooperative consumer takes partitions in a second round; the rest never stop."""
    world = make_world({"t": 6})
    a = world.consumer("a", ["cooperative-sticky"])
    world.run(10_000)
    assert len(a.port.owned_partitions) == 6

    b = world.consumer("b", ["cooperative-sticky"])
    world.run(25_000)

    assert _owned(world) == _all("t", 6)
    assert len(a.port.owned_partitions) == len(b.port.owned_partitions) == 3
    revoked = [tp for given in a.callbacks(CallbackKind.PARTITIONS_REVOKED) for tp in given]
    assert len(revoked) == 3
    assert b.callbacks(CallbackKind.PARTITIONS_REVOKED) == []
    assert a.callbacks(CallbackKind.PARTITIONS_LOST) == []


def test_member_id_required_costs_one_more_join(make_world: "type[World]") -> None:
    """A dynamic member joins twice: first for its id, then with the reason naming it."""
    world = make_world({"t": 1})
    world.consumer("a")

    world.run(10_000)

    joins = [r for _, _, r in world.requests if isinstance(r, JoinGroupRequest)]
    assert [bool(r.member_id) for r in joins] == [False, True]
    assert joins[1].reason == f"need to re-join with the given member-id: {joins[1].member_id}"


def test_static_member_returns_without_rebalance(make_world: "type[World]") -> None:
    """A static member that closes does not leave; its successor gets its partitions back."""
    world = make_world({"t": 4})
    a = world.consumer("a", group_instance_id="one")
    b = world.consumer("b", group_instance_id="two")
    world.run(10_000)
    generation = a.port.generation_id

    world.close(b)
    world.run(12_000)
    again = world.consumer("b2", group_instance_id="two")
    world.run(20_000)

    assert a.port.generation_id == again.port.generation_id == generation
    assert _owned(world) == _all("t", 4)
    assert not [r for _, _, r in world.requests if isinstance(r, LeaveGroupRequest)]


def test_offsets_survive_a_handover(make_world: "type[World]") -> None:
    """A new owner starts where the last one committed when it gave the partition up."""
    world = make_world({"t": 1})
    a = world.consumer("a")
    world.run(10_000)
    a.port.advance_position(TopicPartition("t", 0), 42)
    world.close(a)
    world.run(11_000)

    b = world.consumer("b")
    world.run(20_000)

    assert b.port.positions == {TopicPartition("t", 0): 42}


def test_slow_application_leaves_and_comes_back(make_world: "type[World]") -> None:
    """Past max.poll.interval.ms a member leaves; its next poll loses partitions and rejoins."""
    world = make_world({"t": 2})
    a = world.consumer("a", rebalance_timeout_ms=20_000)
    world.run(10_000)
    a.polling = False
    world.run(40_000)
    assert a.port.state is MemberState.UNJOINED

    a.polling = True
    world.carry_out(a, a.port.poll(world.now_ms, a.poll_timeout_ms))
    world.run(50_000)

    assert a.callbacks(CallbackKind.PARTITIONS_LOST) == [tuple(_all("t", 2))]
    assert _owned(world) == _all("t", 2)
