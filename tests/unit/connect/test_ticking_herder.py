"""The herder's ticks against a script: starting, stopping, catching up, scheduled rebalances."""

from collections.abc import Callable

import msgspec
import pytest

from coordinator_sim.clients.config import WorkerConfig
from coordinator_sim.clients.effects import (
    CallbackKind,
    Closed,
    Connect,
    Effects,
    PollReturned,
    RunCallback,
    Send,
)
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot
from coordinator_sim.connect.config_log import ConfigChange, change_between
from coordinator_sim.connect.ticking_herder import Herder
from coordinator_sim.connect.work_keeper import Phase
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.protocol.embedded import ConnectAssignment
from coordinator_sim.protocol.messages import (
    CoordinatorOfKey,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MetadataRequest,
    MetadataResponse,
    Node,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_sim.protocol.requests import Request, Response
from coordinator_sim.protocol.resources import ConnectorTaskId
from coordinator_sim.wire.connect_protocol import encode_connect_assignment

NODE = Node(node_id=1, host="broker", port=9092)
X0, X1 = ConnectorTaskId("x", 0), ConnectorTaskId("x", 1)
NAMES = ("default", "compatible", "sessioned")


class Topic:
    """What the worker has read of the config topic."""

    def __init__(self) -> None:
        self.view = ConfigSnapshot(offset=5, connectors={"x": 2})

    def snapshot(self) -> ConfigSnapshot:
        """The present view."""
        return self.view


class Shop:
    """A herder whose group assigns what the test says, and whose work starts and stops at once."""

    def __init__(self, **settings: int) -> None:
        self.now_ms = 0
        self.topic = Topic()
        self.herder = Herder(
            msgspec.convert({"connect_protocol": 2, **settings}, WorkerConfig),
            worker_name="worker",
            url="http://worker/",
            group_id="connect",
            bootstrap=(NODE,),
            config_log=self.topic,
        )
        self.version = 2
        self.generation_id = 0
        self.assignments: list[ConnectAssignment] = []
        self.requests: list[tuple[int, Request]] = []
        self.work: list[tuple[int, CallbackKind, tuple[object, ...]]] = []
        self.held: list[int] = []
        self.holds = False
        self.is_mute = False
        self.tick_count = 0
        self.closed = False

    def start(self) -> None:
        """Begin the herder's loop."""
        self.do(self.herder.poll(0, 1 << 60))

    def assign(self, **fields: object) -> None:
        """What the next SyncGroup answers."""
        defaults = {"version": self.version, "leader": "l", "config_offset": 5}
        self.assignments.append(msgspec.convert({**defaults, **fields}, ConnectAssignment))

    def do(self, effects: Effects) -> None:
        """Carry out effects, and those that follow from them."""
        for effect in effects:
            match effect:
                case Connect(node_id=node_id):
                    self.do(self.herder.on_connected(node_id, self.now_ms))
                case Send(correlation_id=correlation_id, request=request):
                    self.requests.append((self.now_ms, request))
                    response = self._answer(request)
                    if response is not None:
                        self.do(self.herder.on_response(correlation_id, response, self.now_ms))
                case RunCallback():
                    self.work.append(
                        (self.now_ms, effect.kind, (*effect.connectors, *effect.tasks))
                    )
                    if self.holds:
                        self.held.append(effect.token)
                    else:
                        self.do(self.herder.callback_completed(effect.token, None, self.now_ms))
                case PollReturned():
                    self.tick_count += 1
                    self.do(self.herder.poll(self.now_ms, 1 << 60))
                case Closed():
                    self.closed = True
                case _:
                    pass

    def _answer(self, request: Request) -> Response | None:
        if self.is_mute:
            return None
        match request:
            case MetadataRequest():
                return MetadataResponse(brokers=(NODE,), topics=())
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(
                    coordinators=(CoordinatorOfKey(key="connect", node_id=1),)
                )
            case JoinGroupRequest() if self.assignments:
                self.generation_id += 1
                return JoinGroupResponse(
                    generation_id=self.generation_id,
                    protocol_name=NAMES[self.version],
                    leader="l",
                    member_id="m",
                )
            case SyncGroupRequest():
                blob = encode_connect_assignment(self.assignments.pop(0))
                return SyncGroupResponse(assignment=blob)
            case HeartbeatRequest():
                return HeartbeatResponse()
            case LeaveGroupRequest():
                return LeaveGroupResponse()
            case _:
                return None

    def run(self, until_ms: int) -> None:
        """Let deadlines fire up to and including this instant."""
        while True:
            deadline_ms = self.herder.next_deadline_ms()
            if deadline_ms is None or deadline_ms > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = max(self.now_ms, deadline_ms)
            self.do(self.herder.expire(self.now_ms))

    def read(self, offset: int, change: ConfigChange | None = None, **connectors: int) -> None:
        """The worker reads on in its config topic."""
        self.topic.view = ConfigSnapshot(offset=offset, connectors=connectors)
        self.do(self.herder.config_changed(self.now_ms, change))

    def times_of(self, request_type: type) -> list[int]:
        """When requests of this type were sent."""
        return [at_ms for at_ms, request in self.requests if isinstance(request, request_type)]

    def leave_reasons(self) -> list[str | None]:
        """Why the worker left."""
        leaves = [r for _, r in self.requests if isinstance(r, LeaveGroupRequest)]
        return [leave.members[0].reason for leave in leaves]


@pytest.fixture
def make_shop() -> Callable[..., Shop]:
    """Builds a shop with these worker settings."""
    return Shop


def test_work_starts_in_the_tick_after_the_assignment(make_shop: Callable[..., Shop]) -> None:
    """C-HERD-01: the assignment wakes the poll; the next tick starts the work."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0])

    shop.start()

    assert shop.tick_count == 1
    assert shop.work == [(0, CallbackKind.WORK_ASSIGNED, ("x", X0))]
    assert shop.herder.running.connectors == ("x",)
    assert shop.herder.running.tasks == (X0,)
    assert shop.herder.phase is Phase.POLLING
    assert shop.herder.coordinator_node == 1
    assert shop.herder.generation_id == 1
    assert shop.herder.member_id == "m"


def test_past_the_assignment_starts_nothing(make_shop: Callable[..., Shop]) -> None:
    """C-HERD-02: having read further than the assignment, the worker rejoins instead."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0], config_offset=4)
    shop.assign(connectors=["x"], tasks=[X0])

    shop.start()

    assert shop.times_of(JoinGroupRequest) == [0, 0]
    assert shop.work == [(0, CallbackKind.WORK_ASSIGNED, ("x", X0))]


def test_behind_the_assignment_reads_first(make_shop: Callable[..., Shop]) -> None:
    """C-HERD-03: work starts once the log is read up to the assignment."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0], config_offset=6)
    shop.start()
    shop.run(2_000)
    assert shop.work == []
    assert shop.herder.phase is Phase.READING

    shop.read(6, x=2)

    assert [kind for _, kind, _ in shop.work] == [CallbackKind.WORK_ASSIGNED]


def test_incremental_catch_up_backs_off_longer_and_longer(make_shop: Callable[..., Shop]) -> None:
    """Each failed read leaves the group and sleeps 6, 7.5, 10, 15, 30 s; then all work stops."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0])
    shop.start()
    shop.assign(config_offset=9)
    shop.read(6, x=2, y=1)

    shop.run(3_000 + 6_000 + 3_000 + 7_500 + 3_000 + 10_000 + 3_000 + 15_000 + 3_000 + 30_000)
    assert shop.herder.running.tasks == (X0,)
    shop.run(shop.now_ms + 3_000)

    assert shop.leave_reasons() == ["taking too long to read the log"]
    assert shop.herder.running.tasks == ()
    assert shop.work[-1] == (86_500, CallbackKind.WORK_REVOKED, ("x", X0))


def test_eager_catch_up_failure_sleeps_five_minutes(make_shop: Callable[..., Shop]) -> None:
    """C-HERD-04: leave, sleep worker.unsync.backoff.ms, and read again before joining."""
    shop = make_shop(connect_protocol=0)
    shop.version = 0
    shop.assign(config_offset=9)
    shop.start()
    shop.run(3_000)
    assert shop.leave_reasons() == ["taking too long to read the log"]
    assert shop.herder.phase is Phase.SLEEPING

    shop.topic.view = ConfigSnapshot(offset=9, connectors={"x": 2})
    shop.assign(config_offset=9, connectors=["x"])
    shop.run(303_000)

    assert shop.times_of(JoinGroupRequest) == [0, 303_000]
    assert shop.herder.running.connectors == ("x",)


def test_scheduled_delay_rejoins_when_it_is_due(make_shop: Callable[..., Shop]) -> None:
    """C-HERD-06: the delay of the assignment ends in a rejoin."""
    shop = make_shop()
    shop.assign(delay_ms=20_000)
    shop.start()
    assert shop.herder.scheduled_rebalance_ms == 20_000

    shop.assign(connectors=["x"], tasks=[X0, X1])
    shop.run(20_000)

    assert shop.times_of(JoinGroupRequest) == [0, 20_000]
    assert shop.herder.running.tasks == (X0, X1)
    assert shop.herder.scheduled_rebalance_ms is None


def test_revoked_work_is_stopped_and_a_rebalance_follows(make_shop: Callable[..., Shop]) -> None:
    """What was given up is dealt out by a second rebalance, which reports no revocation."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0, X1])
    shop.start()
    shop.assign(config_offset=6, revoked_tasks=[X1])
    shop.assign(config_offset=6)

    shop.read(6, x=2, y=1)

    assert shop.herder.running.tasks == (X0,)
    assert len(shop.times_of(JoinGroupRequest)) == 3
    assert shop.herder.member.assignment is not None
    assert shop.herder.member.assignment.revoked_tasks == ()


def test_new_connector_rejoins(make_shop: Callable[..., Shop]) -> None:
    """C-HERD-09: a connector that was unknown asks for a rebalance."""
    shop = make_shop()
    shop.assign(connectors=["x"])
    shop.start()
    shop.assign(connectors=["y"], config_offset=6)

    shop.read(6, x=2, y=1)

    assert len(shop.times_of(JoinGroupRequest)) == 2
    assert shop.herder.running.connectors == ("x", "y")


def test_updated_connector_is_restarted_by_its_owner(make_shop: Callable[..., Shop]) -> None:
    """C-HERD-08: a known connector's new configuration bounces it without a rebalance."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0])
    shop.start()

    shop.read(6, ConfigChange(updated=("x",)), x=2)

    assert len(shop.times_of(JoinGroupRequest)) == 1
    assert shop.work[1:] == [
        (0, CallbackKind.WORK_REVOKED, ("x",)),
        (0, CallbackKind.WORK_ASSIGNED, ("x",)),
    ]


def test_update_of_a_connector_owned_elsewhere_does_nothing(make_shop: Callable[..., Shop]) -> None:
    """Only the owner restarts a connector."""
    shop = make_shop()
    shop.assign(tasks=[X0])
    shop.start()

    shop.read(6, ConfigChange(updated=("x",)), x=2)

    assert len(shop.work) == 1
    assert len(shop.times_of(JoinGroupRequest)) == 1


def test_reconfigured_tasks_stop_and_start_again(make_shop: Callable[..., Shop]) -> None:
    """New task configurations stop the connector's tasks; the rebalance starts them again."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0, X1])
    shop.start()
    shop.assign(config_offset=6)

    shop.read(6, ConfigChange(reconfigured=("x",)), x=2)

    assert shop.work[1:] == [
        (0, CallbackKind.WORK_REVOKED, (X0, X1)),
        (0, CallbackKind.WORK_ASSIGNED, (X0, X1)),
    ]


def test_removed_connector_rejoins_eagerly(make_shop: Callable[..., Shop]) -> None:
    """In an eager cluster a removal revokes everything on the way to the next assignment."""
    shop = make_shop(connect_protocol=0)
    shop.version = 0
    shop.assign(connectors=["x"], tasks=[X0])
    shop.start()
    shop.assign(config_offset=6)

    shop.read(6)

    assert shop.work[1:] == [(0, CallbackKind.WORK_REVOKED, ("x", X0))]
    assert shop.herder.running.connectors == ()


def test_eager_update_restarts_in_place(make_shop: Callable[..., Shop]) -> None:
    """An eager cluster, too, restarts a reconfigured connector without a rebalance."""
    shop = make_shop(connect_protocol=0)
    shop.version = 0
    shop.assign(connectors=["x"])
    shop.start()

    shop.read(6, ConfigChange(updated=("x",)), x=2)

    assert [kind for _, kind, _ in shop.work[1:]] == [
        CallbackKind.WORK_REVOKED,
        CallbackKind.WORK_ASSIGNED,
    ]


def test_slow_stop_is_given_up_after_the_graceful_timeout(make_shop: Callable[..., Shop]) -> None:
    """The herder waits for a stop no longer than the timeouts; a late answer is ignored."""
    shop = make_shop(task_shutdown_graceful_timeout_ms=2_000)
    shop.assign(tasks=[X0])
    shop.start()
    shop.holds = True
    shop.assign(config_offset=6, revoked_tasks=[X0])
    shop.assign(config_offset=6)

    shop.read(6, x=1)
    shop.run(1_999)
    assert shop.herder.running.tasks == (X0,)
    assert shop.herder.phase is Phase.STOPPING
    shop.run(2_000)

    assert shop.herder.running.tasks == ()
    assert shop.herder.callback_completed(shop.held[0], None, 2_100) == ()


def test_stop_bound_counts_turns_of_eight_threads(make_shop: Callable[..., Shop]) -> None:
    """Nine stops need two turns; connectors have their own timeout."""
    herder = make_shop(task_shutdown_graceful_timeout_ms=7_000).herder

    assert herder.stop_bound_ms(1, 0) == 5_000
    assert herder.stop_bound_ms(0, 8) == 7_000
    assert herder.stop_bound_ms(1, 8) == 14_000


def test_close_stops_the_work_and_leaves(make_shop: Callable[..., Shop]) -> None:
    """A worker that closes stops everything before it leaves."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0])
    shop.start()

    shop.do(shop.herder.close(10, 0))

    assert shop.closed
    assert shop.herder.phase is Phase.CLOSED
    assert shop.work[-1][1] is CallbackKind.WORK_REVOKED
    assert shop.leave_reasons() == ["the consumer is being closed"]
    with pytest.raises(InvariantViolation, match="close while CLOSED"):
        shop.herder.close(20, 0)


def test_close_while_work_starts_ends_after_it(make_shop: Callable[..., Shop]) -> None:
    """A start in progress is finished, then stopped again."""
    shop = make_shop()
    shop.assign(tasks=[X0])
    shop.holds = True
    shop.start()
    shop.do(shop.herder.close(10, 0))
    assert not shop.closed

    shop.holds = False
    shop.do(shop.herder.callback_completed(shop.held[0], None, 20))

    assert shop.closed
    assert shop.herder.running.tasks == ()


def test_close_before_the_first_tick(make_shop: Callable[..., Shop]) -> None:
    """A herder that never ran closes at once."""
    shop = make_shop()

    shop.do(shop.herder.close(0, 0))

    assert shop.closed
    assert shop.herder.next_deadline_ms() is None


def test_one_tick_at_a_time(make_shop: Callable[..., Shop]) -> None:
    """Polling a herder inside its tick is a driver's bug."""
    shop = make_shop()
    shop.start()

    with pytest.raises(InvariantViolation, match="one tick at a time"):
        shop.herder.poll(0, 0)


def test_config_records_before_the_start_are_nobodys_news(make_shop: Callable[..., Shop]) -> None:
    """The listener hears only of records after the start."""
    assert make_shop().herder.config_changed(0) == ()


def test_wakeup_begins_a_new_tick(make_shop: Callable[..., Shop]) -> None:
    """A request for the herder ends its wait for the group."""
    shop = make_shop()
    shop.assign()
    shop.start()
    before = shop.tick_count

    shop.do(shop.herder.wakeup(10))

    assert shop.tick_count == before + 1
    assert shop.herder.phase is Phase.POLLING


def test_long_outage_stops_the_work(make_shop: Callable[..., Shop]) -> None:
    """Without a coordinator for a heartbeat interval the work is stopped."""
    shop = make_shop()
    shop.assign(connectors=["x"], tasks=[X0])
    shop.start()
    shop.requests.clear()
    shop.is_mute = True

    shop.do(shop.herder.on_disconnected(2_147_483_646, 0))
    shop.run(3_000)

    assert shop.herder.running.tasks == ()


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ({"x": 1}, {}, ConfigChange(removed=("x",))),
        ({}, {"x": 0}, ConfigChange(updated=("x",))),
        ({"x": 1}, {"x": 2}, ConfigChange(reconfigured=("x",))),
        ({"x": 1}, {"x": 1}, ConfigChange()),
    ],
)
def test_change_between_views(
    old: dict[str, int], new: dict[str, int], change: ConfigChange
) -> None:
    """Two snapshots tell of removed, added and reconfigured connectors."""
    views = (ConfigSnapshot(offset=i, connectors=c) for i, c in enumerate((old, new)))

    assert change_between(*views) == change
