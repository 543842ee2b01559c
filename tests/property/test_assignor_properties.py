"""What every assignor must hold, on groups that nobody wrote down."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.assignors import contract, registry
from coordinator_sim.assignors.user_data import encode_sticky_user_data
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.messages.embedded.contents import Subscription

pytestmark = pytest.mark.property

Owned = Mapping[str, Sequence[TopicPartition]]

MEMBER_IDS = st.lists(
    st.text("abcxyz0189-", min_size=1, max_size=8), min_size=1, max_size=8, unique=True
)
RACKS = st.sampled_from(["", "a", "b", "c"])


@st.composite
def topics(draw: st.DrawFn) -> dict[str, list[tuple[str, ...]]]:
    """One to five topics of one to nine partitions, with the racks of their replicas."""
    replica_racks = st.sets(st.sampled_from("abc"), max_size=2).map(sorted).map(tuple)
    names = st.sampled_from(["t0", "t1", "orders", "a-very-long-topic-name", "\U0001f600"])
    return draw(
        st.dictionaries(
            names, st.lists(replica_racks, min_size=1, max_size=9), min_size=1, max_size=5
        )
    )


def group(
    subscriptions: Mapping[str, Sequence[str]],
    owned: Owned,
    racks: Mapping[str, str],
    generation_id: int,
) -> list[contract.AssignorMember]:
    """Members of one generation that own what they are said to; those without own nothing."""
    return [
        contract.AssignorMember(
            member_id=member_id,
            subscription=Subscription(
                topics=tuple(wanted),
                user_data=encode_sticky_user_data(owned[member_id], generation_id)
                if member_id in owned
                else None,
                owned_partitions=tuple(owned.get(member_id, ())),
                generation_id=generation_id if member_id in owned else -1,
                rack_id=racks.get(member_id),
            ),
        )
        for member_id, wanted in subscriptions.items()
    ]


def owners(assignment: Owned) -> dict[TopicPartition, str]:
    """Partition -> owner, which must be unique."""
    given_out = [(tp, member_id) for member_id, own in assignment.items() for tp in own]
    result = dict(given_out)
    assert len(result) == len(given_out)
    return result


def spread(assignment: Owned) -> int:
    """The difference between the most and the least loaded member."""
    counts = [len(own) for own in assignment.values()]
    return max(counts) - min(counts)


@given(
    data=st.data(),
    known=topics(),
    member_ids=MEMBER_IDS,
    assignor=st.sampled_from(sorted(registry.CONSUMER_ASSIGNORS)),
)
def test_every_subscribed_partition_has_one_subscribed_owner(
    data: st.DataObject, known: contract.TopicRacks, member_ids: list[str], assignor: str
) -> None:
    """In a fresh group nothing is withheld, doubled, or given to somebody who did not ask."""
    wanted = st.lists(st.sampled_from(sorted(known)), min_size=1, unique=True)
    subscriptions = {member_id: data.draw(wanted) for member_id in member_ids}
    racks = {member_id: data.draw(RACKS) for member_id in member_ids}
    members = group(subscriptions, {}, racks, -1)
    assignment = registry.make_consumer_assignor(assignor).assign(known, members)
    assert set(assignment) == set(member_ids)
    subscribed = {topic for topics_of in subscriptions.values() for topic in topics_of}
    by_partition = owners(assignment)
    assert set(by_partition) == {
        TopicPartition(topic, number) for topic in subscribed for number in range(len(known[topic]))
    }
    assert all(tp.topic in subscriptions[owner] for tp, owner in by_partition.items())


@given(known=topics(), member_ids=MEMBER_IDS)
def test_equal_subscriptions_balance(known: contract.TopicRacks, member_ids: list[str]) -> None:
    """All but range differ by one at most; range does so within each topic."""
    members = group(dict.fromkeys(member_ids, sorted(known)), {}, {}, -1)
    for name in ("roundrobin", "sticky", "cooperative-sticky"):
        assert spread(registry.make_consumer_assignor(name).assign(known, members)) <= 1
    ranges = registry.make_consumer_assignor("range").assign(known, members)
    for topic in known:
        of_topic = {m: [tp for tp in own if tp.topic == topic] for m, own in ranges.items()}
        assert spread(of_topic) <= 1
        for own in of_topic.values():
            numbers = [tp.partition for tp in own]
            assert numbers == list(range(numbers[0], numbers[0] + len(own))) if own else True


def moves_needed(before: Owned, member_count: int) -> int:
    """The fewest partitions that can move when the group grows to so many members."""
    total = sum(len(own) for own in before.values())
    floor, extra = divmod(total, member_count)
    counts = sorted((len(own) for own in before.values()), reverse=True)
    return sum(max(0, count - floor - (rank < extra)) for rank, count in enumerate(counts))


@given(known=topics(), member_ids=MEMBER_IDS, joiner=st.text("klm", min_size=1, max_size=4))
def test_sticky_moves_no_more_than_needed_when_a_member_joins(
    known: contract.TopicRacks, member_ids: list[str], joiner: str
) -> None:
    """The joiner's share is all that moves; cooperative gets there in two rounds."""
    wanted = sorted(known)
    for name in ("sticky", "cooperative-sticky"):
        assignor = registry.make_consumer_assignor(name)
        before = assignor.assign(known, group(dict.fromkeys(member_ids, wanted), {}, {}, -1))
        everyone = dict.fromkeys([*member_ids, joiner], wanted)
        after = assignor.assign(known, group(everyone, before, {}, 1))
        if name == "cooperative-sticky":
            assert all(set(after[m]) <= set(before[m]) for m in member_ids)
            after = assignor.assign(known, group(everyone, after, {}, 2))
        old, new = owners(before), owners(after)
        assert old.keys() == new.keys()
        moved = sum(old[partition] != new[partition] for partition in old)
        assert moved == moves_needed(before, len(everyone))
        assert spread(after) <= 1


@given(data=st.data(), known=topics(), member_ids=MEMBER_IDS)
def test_cooperative_rounds_converge(
    data: st.DataObject, known: contract.TopicRacks, member_ids: list[str]
) -> None:
    """From any ownership each round takes or gives, never both, and all ends with an owner."""
    everything = [TopicPartition(topic, n) for topic in known for n in range(len(known[topic]))]
    holder = st.sampled_from([*member_ids, ""])
    held: dict[str, list[TopicPartition]] = {member_id: [] for member_id in ["", *member_ids]}
    for partition in everything:
        held[data.draw(holder)].append(partition)
    del held[""]
    subscriptions = dict.fromkeys(member_ids, sorted(known))
    assignor = registry.make_consumer_assignor("cooperative-sticky")
    first = assignor.assign(known, group(subscriptions, held, {}, 1))
    old, new = owners(held), owners(first)
    assert all(old.get(partition, owner) == owner for partition, owner in new.items())
    second = assignor.assign(known, group(subscriptions, first, {}, 2))
    assert set(owners(second)) == set(everything)
    assert spread(second) <= 1
    third = assignor.assign(known, group(subscriptions, second, {}, 3))
    assert owners(third) == owners(second)


class ConnectGroup:
    """Workers that follow the plans of one leader."""

    def __init__(self, assignor: contract.ConnectAssignor, worker_ids: Sequence[str]) -> None:
        self.assignor = assignor
        self.generation_id = 0
        self.now_ms = 0
        self.delay_ms = 0
        self.running: dict[str, contract.WorkerLoad] = dict.fromkeys(
            worker_ids, contract.WorkerLoad()
        )

    def rebalance(self, configured: Mapping[str, int]) -> bool:
        """One delivered generation after the last delay; answers whether it changed anything."""
        self.now_ms += self.delay_ms
        self.generation_id += 1
        plan = self.assignor.assign(
            configured=configured,
            members=[
                contract.ConnectMember(member_id=worker, connectors=own.connectors, tasks=own.tasks)
                for worker, own in self.running.items()
            ],
            generation_id=self.generation_id,
            last_completed_generation_id=self.generation_id - 1 or -1,
            now_ms=self.now_ms,
        )
        self.delay_ms = plan.delay_ms
        before = dict(self.running)
        for worker, own in before.items():
            added, revoked = plan.assigned[worker], plan.revoked.get(worker, contract.WorkerLoad())
            self.running[worker] = contract.WorkerLoad(
                connectors=tuple(c for c in own.connectors if c not in revoked.connectors)
                + added.connectors,
                tasks=tuple(t for t in own.tasks if t not in revoked.tasks) + added.tasks,
            )
        return before != self.running or plan.delay_ms > 0

    def settle(self, configured: Mapping[str, int]) -> None:
        """Rebalance until nothing changes; the number of rounds is bounded."""
        for _ in range(12):
            changed = self.rebalance(configured)
            self.assert_single_owners()
            if not changed:
                break
        else:
            raise AssertionError("the group does not settle")
        connectors = [c for own in self.running.values() for c in own.connectors]
        tasks = [t for own in self.running.values() for t in own.tasks]
        assert sorted(connectors) == sorted(configured)
        assert sorted(tasks) == sorted(
            ConnectorTaskId(c, number) for c, count in configured.items() for number in range(count)
        )
        for counts in (
            [len(own.connectors) for own in self.running.values()],
            [len(own.tasks) for own in self.running.values()],
        ):
            assert max(counts) - min(counts) <= 1

    def assert_single_owners(self) -> None:
        """Every connector and task has one worker."""
        running = [item for own in self.running.values() for item in (*own.connectors, *own.tasks)]
        assert len(set(running)) == len(running)


@given(
    data=st.data(),
    worker_ids=MEMBER_IDS,
    configured=st.dictionaries(st.sampled_from("pqrst"), st.integers(0, 6), min_size=1),
    max_delay_ms=st.sampled_from([0, 1, 1000, 300_000]),
)
def test_incremental_plans_converge_without_double_owners(
    data: st.DataObject, worker_ids: list[str], configured: dict[str, int], max_delay_ms: int
) -> None:
    """Through joins, departures and changed connectors, work ends balanced and never doubles."""
    assignor = registry.make_connect_assignor(
        "sessioned", scheduled_rebalance_max_delay_ms=max_delay_ms
    )
    connect = ConnectGroup(assignor, worker_ids)
    connect.settle(configured)
    for _ in range(data.draw(st.integers(1, 4))):
        match data.draw(st.sampled_from(["join", "leave", "configure"])):
            case "join":
                newcomer = data.draw(st.text("klm", min_size=1, max_size=5))
                connect.running.setdefault(newcomer, contract.WorkerLoad())
            case "leave" if len(connect.running) > 1:
                del connect.running[data.draw(st.sampled_from(sorted(connect.running)))]
            case _:
                name = data.draw(st.sampled_from("pqrst"))
                configured = configured | {name: data.draw(st.integers(0, 6))}
    connect.settle(configured)
