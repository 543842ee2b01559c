"""Operations on a served cluster from outside: stop and pause brokers, move leaders.

`leadership` elects the new leaders; the driver handles the sockets.

Source: kafka trunk, ReplicationControlManager.java (handleBrokerFenced, handleBrokerUnfenced).
"""

from collections.abc import Iterator
from enum import Enum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.groups.group_coordinators import GroupCoordinators
from coordinator_sim.broker.metadata.changes import BrokerStarted, LeaderElected
from coordinator_sim.broker.metadata.image import NO_LEADER, PartitionState
from coordinator_sim.broker.scheduler import Task
from coordinator_sim.broker.slow_appends import SlowAppends
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for

ELECTION_DELAY_MS: Final = 1_000
"""Default group time from the loss of a broker to the election of other leaders.

DEVIATION: Kafka's `broker.session.timeout.ms` is 9,000; tests should wait less.
"""


@unique
class BrokerStatus(Enum):
    """State of a broker.

    A paused broker is like a process that got SIGSTOP; a partitioned one runs, but its clients
    cannot reach it.
    """

    RUNNING = "running"
    PAUSED = "paused"
    PARTITIONED = "partitioned"
    STOPPED = "stopped"


class LeaderMoved(Struct, frozen=True, kw_only=True):
    """The new leader of a partition."""

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int


class Operations:
    """Stops, pauses, partitions and resumes brokers; moves leaders; applies faults.

    Args:
        cluster: The parts of the cluster to operate on.
        groups: The group coordinators.

    Attributes:
        election_delay_ms: Group time from the loss of a broker to the election of other leaders.
        slow_appends: Lets appends complete late.
    """

    def __init__(self, cluster: ClusterParts, groups: GroupCoordinators) -> None:
        self._cluster = cluster
        self._groups = groups
        self._status: dict[int, BrokerStatus] = {}
        self._losses: dict[int, int] = {}
        self.election_delay_ms = ELECTION_DELAY_MS
        self.slow_appends = SlowAppends(cluster, groups)

    # -- brokers ---------------------------------------------------------------------------

    def status(self, broker_id: int) -> BrokerStatus:
        """The state of a broker.

        Raises:
            ConfigError: the cluster has no broker of that id.
        """
        known = self._cluster.settings.broker_ids
        if broker_id not in known:
            raise ConfigError(f"no broker {broker_id}: there are {', '.join(map(str, known))}")
        return self._status.get(broker_id, BrokerStatus.RUNNING)

    def stop(self, broker_id: int, now: Instants) -> None:
        """Kill a broker's process: its memory is lost; other leaders are elected later.

        Raises:
            ConfigError: there is no such broker, or it is stopped already.
        """
        self._expect(broker_id, BrokerStatus.RUNNING, BrokerStatus.PAUSED, BrokerStatus.PARTITIONED)
        self._status[broker_id] = BrokerStatus.STOPPED
        self._cluster.brokers.stop(broker_id)
        self._lose(broker_id, now)

    def pause(self, broker_id: int, now: Instants) -> None:
        """Freeze a broker's process with its timers; other leaders are elected later.

        Raises:
            ConfigError: there is no such broker, or it does not run.
        """
        self._expect(broker_id, BrokerStatus.RUNNING)
        self._status[broker_id] = BrokerStatus.PAUSED
        self._cluster.brokers.frozen[broker_id] = None
        self._lose(broker_id, now)

    def partition(self, broker_id: int) -> None:
        """Cut a broker off from its clients; it runs on, and stays the leader of its partitions.

        Raises:
            ConfigError: there is no such broker, or it does not run.
        """
        self._expect(broker_id, BrokerStatus.RUNNING)
        self._status[broker_id] = BrokerStatus.PARTITIONED

    def resume(self, broker_id: int, now: Instants) -> None:
        """Restart a stopped broker, continue a paused one, or reconnect a partitioned one.

        A paused one learns now what the cluster has decided meanwhile.

        Raises:
            ConfigError: there is no such broker, or it runs.
        """
        others = (BrokerStatus.STOPPED, BrokerStatus.PAUSED, BrokerStatus.PARTITIONED)
        was = self._expect(broker_id, *others)
        cluster = self._cluster
        if was is BrokerStatus.STOPPED:
            epoch = max(cluster.image.broker_epochs.values(), default=0) + 1
            cluster.change(BrokerStarted(broker_id, epoch))
            cluster.brokers.start(broker_id)
        self._status[broker_id] = BrokerStatus.RUNNING
        if was is BrokerStatus.PAUSED:
            self._groups.thaw(broker_id, now)
        cluster.scheduler.arm()
        if was is BrokerStatus.STOPPED or broker_id in cluster.fenced:
            cluster.fenced.pop(broker_id, None)
            self._return(broker_id, now)

    def _expect(self, broker_id: int, *wanted: BrokerStatus) -> BrokerStatus:
        status = self.status(broker_id)
        if status not in wanted:
            raise ConfigError(f"broker {broker_id} is {status.value}")
        return status

    def _lose(self, broker_id: int, now: Instants) -> None:
        """Let the controller notice the loss after the delay, unless the broker is back by then."""
        loss = self._losses[broker_id] = self._losses.get(broker_id, 0) + 1

        def notice(later: Instants) -> None:
            if self._losses[broker_id] == loss:
                self.fence(broker_id, later)

        if self.election_delay_ms == 0:
            notice(now)
        else:
            self._cluster.scheduler.at_group_ms(now.group_ms + self.election_delay_ms, notice)

    def fence(self, broker_id: int, now: Instants) -> None:
        """Fence a broker that does not run: other replicas lead its partitions."""
        if self.status(broker_id) not in {BrokerStatus.STOPPED, BrokerStatus.PAUSED}:
            return
        if broker_id in self._cluster.fenced:
            return  # it was paused, and then killed
        self._cluster.fenced[broker_id] = None
        for listener in self._cluster.cluster_events.broker_fenced:
            listener(broker_id)
        self._cluster.leadership.broker_lost(broker_id, now)
        self._correct_isr()

    def _return(self, broker_id: int, now: Instants) -> None:
        """Take a broker back; it is in sync at once, as all replicas share one log."""
        self._cluster.leadership.broker_back(broker_id, now)
        self._correct_isr()

    def _correct_isr(self) -> None:
        """Set each ISR to the replicas that are not fenced; if all are, leave it unchanged."""
        cluster = self._cluster
        for topic, index, state in self._partitions():
            out = (*cluster.fenced, *cluster.leadership.shutting_down)
            isr = tuple(each for each in state.replicas if each not in out)
            if isr and isr != state.isr:
                change = LeaderElected(topic, index, state.leader_id, state.leader_epoch, isr)
                cluster.change(change)

    # -- leaders ---------------------------------------------------------------------------

    def move_coordinator(self, group_id: str, to: int | None, now: Instants) -> LeaderMoved:
        """Move the coordinator of a group, and of all groups of its offsets partition.

        Args:
            group_id: Any group id; the group need not exist.
            to: Broker id; None for the next running broker, or the same one if there is no other.
            now: The present.

        Raises:
            ConfigError: there is no offsets topic yet, or that broker does not run.
        """
        topic = self._cluster.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise ConfigError("no group has a coordinator yet: nobody has asked for one")
        return self.elect(OFFSETS_TOPIC, partition_for(group_id, len(topic.partitions)), to, now)

    def elect(
        self, topic: str, index: int, to: int | None, now: Instants, *, old_notices: bool = True
    ) -> LeaderMoved:
        """Make another broker the leader of a partition, at a higher epoch.

        Args:
            topic: Its topic.
            index: Its number.
            to: Broker id; None for the next running broker.
            now: The present.
            old_notices: Whether the group coordinator of the old leader resigns now. If not, it
                answers as leader until `GroupCoordinators.notice`, but commits nothing.

        Raises:
            ConfigError: there is no such partition, or that broker does not run.
        """
        state = self._cluster.image.partition(topic, index)
        if state is None:
            raise ConfigError(f"there is no partition {topic}-{index}")
        leader_id = self._next_after(state.leader_id) if to is None else to
        if leader_id not in self._running():
            raise ConfigError(f"broker {leader_id} cannot lead: it does not run")
        if topic == OFFSETS_TOPIC and not old_notices:
            self._groups.depose_unaware(index)
        self._cluster.leadership.elect(topic, index, leader_id, now)
        return LeaderMoved(
            topic=topic, partition=index, leader_id=state.leader_id, leader_epoch=state.leader_epoch
        )

    def _next_after(self, broker_id: int) -> int:
        running = self._running()
        later = [each for each in running if each > broker_id]
        return (later or running or [NO_LEADER])[0]

    def _running(self) -> list[int]:
        stays = (BrokerStatus.RUNNING, BrokerStatus.PARTITIONED)
        return [each for each in self._cluster.settings.broker_ids if self.status(each) in stays]

    def _partitions(self) -> Iterator[tuple[str, int, PartitionState]]:
        for topic in list(self._cluster.image.topics.values()):
            for index, state in enumerate(topic.partitions):
                yield topic.name, index, state

    # -- faults ----------------------------------------------------------------------------

    def taken_while_appends_fail(self, error: ErrorCode, take: Task, now: Instants) -> None:
        """Take a request and fail all of its appends with an error."""
        hosted = self._cluster.hosted
        hosted.append_failure = error
        try:
            take(now)
        finally:
            hosted.append_failure = ErrorCode.NONE

    def hold_high_watermark(self, topic: str, partition: int, *, hold: bool, now: Instants) -> None:
        """Hold a partition's high watermark where it is, as lagging followers do, or release it.

        Records appended meanwhile cannot be read, and are not acknowledged with acks=-1; nor are
        the writes of the group coordinator. A leader elected meanwhile replicates as usual.

        Raises:
            ConfigError: there is no such partition.
        """
        log = self._cluster.logs.log_of(topic, partition)
        if log is None:
            raise ConfigError(f"no partition {topic}-{partition}: create the topic first")
        log.hold_high_watermark(log.high_watermark if hold else None)
        if topic == OFFSETS_TOPIC:
            self._groups.hold_high_watermark(partition, hold=hold, now=now)
        self._cluster.cluster_events.touched((topic, partition))

    def taken_while_coordinator_moves(
        self, group_id: str, to: int | None, take: Task, now: Instants
    ) -> None:
        """Take a request, and move its group's coordinator before its appends are committed.

        The sender gets NOT_COORDINATOR, and the new coordinator finds the appended records in the
        log.
        """
        cluster = self._cluster
        topic = cluster.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            take(now)
            return
        partition = partition_for(group_id, len(topic.partitions))
        broker = self._groups.leader_of(partition)
        if broker is not None:
            broker.coordinator.hold_high_watermark(hold=True, partition=partition)
        take(now)
        self.move_coordinator(group_id, to, now)
        if broker is not None:
            broker.coordinator.hold_high_watermark(hold=False, partition=partition)
