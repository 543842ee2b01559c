"""Slow appends: an append completes late, as it does while followers are slow to fetch it.

Before the append the partition's high watermark is held where the append begins. When the delay is
over it may pass, up to the next append that is still late: a high watermark never skips one.
Replicas are labels here, so that this is all that a slow follower in sync is.

Source: kafka trunk, Partition.scala (maybeIncrementLeaderHW), DelayedProduce.scala,
CoordinatorRuntime.java (HighWatermarkListener).
"""

from collections import deque
from functools import partial

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.groups.group_coordinators import GroupCoordinators
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.scheduler import Task
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from coordinator_sim.log.partition_log import PartitionLog


class _Append:
    """An append that is late.

    Attributes:
        base_offset: Where the append begins; the high watermark does not pass it.
    """

    __slots__ = ("base_offset", "is_complete")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.is_complete = False


class _Late:
    """The late appends of one partition, in the order of the log. Bounded by their delays."""

    __slots__ = ("appends", "log")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.appends: deque[_Append] = deque()


class SlowAppends:
    """Lets appends complete late: those of one request, or all of a partition.

    Args:
        cluster: The parts of the cluster, with the logs.
        groups: The group coordinators.
    """

    def __init__(self, cluster: ClusterParts, groups: GroupCoordinators) -> None:
        self._cluster = cluster
        self._groups = groups
        self._delays: dict[Place, int] = {}
        self._request_ms = 0
        self._late: dict[Place, _Late] = {}
        cluster.cluster_events.topic_deleted.append(self._topic_deleted)

    def delay_of(self, topic: str, partition: int) -> int:
        """Wall time by which appends to a partition complete late; 0 for on time."""
        return self._delays.get((topic, partition), 0)

    def set_delay(self, topic: str, partition: int | None, ms: int) -> None:
        """Let appends to a partition complete late from now on.

        Args:
            topic: Its topic.
            partition: Its number; None for all partitions that the topic has.
            ms: Wall time; 0 for on time again. What is late already stays so.

        Raises:
            ConfigError: there is no such partition, or nobody waits for its replicas.
        """
        state = self._cluster.image.topics.get(topic)
        count = 0 if state is None else len(state.partitions)
        if not (count if partition is None else 0 <= partition < count):
            name = topic if partition is None else f"{topic}-{partition}"
            raise ConfigError(f"there is no partition {name}: create the topic first")
        if topic == TRANSACTIONS_TOPIC:
            raise ConfigError(
                f"{topic}: its appends complete at once here; slow those of the topics that "
                f"transactions write to, or of {OFFSETS_TOPIC}"
            )
        for each in range(count) if partition is None else (partition,):
            self._delays.pop((topic, each), None)
            if ms:
                self._delays[topic, each] = ms
        self._watch()

    def taken_while_slow(self, ms: int, take: Task, now: Instants) -> None:
        """Take a request, all of whose appends complete `ms` of wall time late."""
        self._request_ms = ms
        self._watch()
        try:
            take(now)
        finally:
            self._request_ms = 0
            self._watch()

    def _topic_deleted(self, name: str, _id: bytes, partitions: int, _now: Instants) -> None:
        for partition in range(partitions):
            self._delays.pop((name, partition), None)
        self._watch()

    def _watch(self) -> None:
        """Ask to be told of appends as long as any may be late."""
        watch = self._before_append if self._request_ms or self._delays else None
        self._cluster.hosted.before_append = watch

    def _before_append(self, place: Place) -> None:
        ms = max(self._request_ms, self._delays.get(place, 0))
        log = self._cluster.logs.log_of(*place)
        if log is None or not ms:
            return
        now = self._cluster.latest
        late = self._late.get(place)
        if late is None or late.log is not log:  # Another log: the topic was created anew.
            late = self._late[place] = _Late(log)
            log.hold_high_watermark(log.high_watermark)
        topic, partition = place
        if topic == OFFSETS_TOPIC:
            self._groups.hold_high_watermark(partition, hold=True, now=now)
        append = _Append(log.end_offset)
        late.appends.append(append)
        complete = partial(self._complete, place, late, append)
        self._cluster.scheduler.at_wall_ms(now.wall_ms + ms, complete)

    def _complete(self, place: Place, late: _Late, append: _Append, now: Instants) -> None:
        append.is_complete = True
        if self._late.get(place) is not late:
            return
        appends = late.appends
        while appends and appends[0].is_complete:
            appends.popleft()
        limit = appends[0].base_offset if appends else None
        if limit is None:
            del self._late[place]
        late.log.hold_high_watermark(limit)
        topic, partition = place
        if topic == OFFSETS_TOPIC:
            if limit is None:
                self._groups.hold_high_watermark(partition, hold=False, now=now)
            else:
                self._groups.advance_high_watermark(partition, limit, now)
        self._cluster.cluster_events.touched(place)
