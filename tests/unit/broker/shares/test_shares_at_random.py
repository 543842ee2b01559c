"""Members of a share group in a served cluster that do anything, while leaders move and restart."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.share_coordinator.persister import StatePersister
from coordinator_sim.broker.shares.in_flight_state import RecordState
from coordinator_sim.broker.shares.persister import StateWritten, WriteState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.shares.share_clients import Client
from tests.unit.broker.shares.share_world import (
    ACCEPT,
    REJECT,
    RELEASE,
    ShareWorld,
    acquired,
    errors,
    share_world,
)

MEMBERS = ("a", "b", "c")
STEPS = 120
KINDS = (ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT)


class Ends:
    """The records that are done with, as the share coordinator was told and has kept it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[int] = Counter()
        write = StatePersister.write

        def told(
            persister: StatePersister,
            request: WriteState,
            then: Callable[[StateWritten], None],
            now: Instants,
        ) -> None:
            def written(answer: StateWritten) -> None:
                if answer.error is ErrorCode.NONE:
                    self._count(request)
                then(answer)

            write(persister, request, written, now)

        monkeypatch.setattr(StatePersister, "write", told)

    def _count(self, request: WriteState) -> None:
        for each in request.batches:
            if RecordState(each.delivery_state).is_terminal:
                self.counts.update(range(each.first_offset, each.last_offset + 1))


class Member:
    """A member that reads from whoever leads the partition."""

    def __init__(self, world: ShareWorld, name: str) -> None:
        self.world = world
        self.name = name
        self.client: Client | None = None
        self.epoch = 0
        self.held: list[tuple[int, int]] = []

    def leave(self) -> None:
        """Its connection is gone, and all that it had."""
        if self.client is not None:
            self.client.close()
        self.client = None
        self.epoch = 0
        self.held = []

    def _connected(self) -> None:
        if self.client is None:
            state = self.world.cluster.image.topics["lines"].partitions[0]
            self.client = self.world.connect(state.leader_id)

    def fetch(self, max_wait_ms: int = 0) -> None:
        """Acquire what there is."""
        self._connected()
        answer = self.world.fetch(self.epoch, self.name, self.client, maxWaitMs=max_wait_ms)
        if self._goes_on(answer):
            for first, last, _ in acquired(answer).get(0, ()):
                self.held.append((first, last))

    def acknowledge(self, kind: int) -> None:
        """Do something with the first records that it has."""
        if not self.held or self.client is None:
            return
        first, last = self.held.pop(0)
        self.world.client = self.client
        answer = self.world.acknowledge(self.epoch, (first, last, kind), member=self.name)
        self._goes_on(answer)

    def _goes_on(self, answer: Fields) -> bool:
        """Whether its session does; otherwise it begins anew."""
        wrong = answer["errorCode"] or any(
            each == ErrorCode.NOT_LEADER_OR_FOLLOWER for each in errors(answer)
        )
        if wrong:
            self.leave()
            return False
        self.epoch += 1
        return True


def step(world: ShareWorld, members: list[Member], chance: Random) -> None:
    """Something happens."""
    member = chance.choice(members)
    match chance.randrange(12):
        case 0 | 1 | 2 | 3:
            member.fetch()
        case 4 | 5 | 6 | 7:
            member.acknowledge(chance.choice(KINDS))
        case 8:
            member.leave()
        case 9:
            world.produce(chance.randrange(1, 6))
        case 10:
            world.clients.connect().wait(chance.choice((100, 5_000, 31_000)))
        case _:
            move(world, members, chance)


def move(world: ShareWorld, members: list[Member], chance: Random) -> None:
    """The leader is another one, or restarts."""
    leader_id = world.cluster.image.topics["lines"].partitions[0].leader_id
    operations = world.cluster.operations
    if chance.random() < 0.5:
        operations.elect("lines", 0, 3 - leader_id, world.now)
        return
    for member in members:
        member.leave()
    operations.stop(leader_id, world.now)
    operations.resume(leader_id, world.now)


@pytest.mark.parametrize("seed", range(40))
def test_each_record_is_done_with_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens, none is accepted or given up twice, and none is left in the end."""
    ends = Ends(monkeypatch)
    chance = Random(seed)  # noqa: S311 - a test draws, not a lock
    world = share_world(brokers=(1, 2), group_share_delivery_count_limit="10")
    world.cluster.operations.election_delay_ms = 0
    world.start()
    members = [Member(world, name) for name in MEMBERS]
    for _ in range(STEPS):
        step(world, members, chance)
    for member in members:
        member.leave()
    last = Member(world, "last")
    log = world.cluster.logs.log_of("lines", 0)
    assert log is not None
    for _ in range(100):
        last.fetch(500)
        while last.held:
            last.acknowledge(ACCEPT)

    assert ends.counts == Counter(range(log.end_offset))
    world.produce(1)
    last.fetch(500)
    assert last.held == [(log.end_offset - 1, log.end_offset - 1)]
