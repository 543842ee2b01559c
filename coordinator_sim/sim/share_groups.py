"""Share groups in virtual time: the application's loop around the port, and the logs it reads.

The records of other topics are only counted. Those of topics that share groups read are also in
their brokers' logs, without content: the brokers decide which records a member gets.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from coordinator_sim.broker.metadata.changes import ConfigsChanged
from coordinator_sim.broker.metadata.image import GROUP_RESOURCE
from coordinator_sim.broker.shares.share_values import Progress
from coordinator_sim.clients.config import ShareConsumerConfig
from coordinator_sim.clients.effects import (
    AcknowledgementsCompleted,
    CommitCompleted,
    RunCallback,
)
from coordinator_sim.clients.exceptions import WAKEUP
from coordinator_sim.clients.share_consumer import ShareConsumer
from coordinator_sim.clock import Action
from coordinator_sim.connect.effects import WorkerEffect
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.share_types import AcknowledgeType
from coordinator_sim.sim.brokers import ClusterDriver
from coordinator_sim.sim.client_process import ClientProcess
from coordinator_sim.sim.consumers import CLOSE_TIMEOUT_MS, POLL_TIMEOUT_MS
from coordinator_sim.sim.processing import Records, pace_of, stalls_in
from coordinator_sim.sim.scenario.work import PerPoll
from coordinator_sim.sim.scenario.world import ShareConsumerSpec, ShareGroupSpec
from coordinator_sim.sim.share_ledger import ShareLedger
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, OffsetEntry

_BATCH_US: Final = 100 * US_PER_MS
"""From one batch of a topic's producers to the next."""


class ShareLogs:
    """Writes the records of topics that share groups read into the brokers' logs.

    Args:
        world: The topics, and how many records they have.
        brokers: The brokers.
        groups: The share groups; their settings are made known to the brokers, and what becomes of
            their records is told to the trace.
    """

    def __init__(
        self, world: World, brokers: ClusterDriver, groups: Iterable[ShareGroupSpec]
    ) -> None:
        self._world = world
        self._brokers = brokers
        self._topics = tuple(dict.fromkeys(topic for group in groups for topic in group.topics))
        self._ledgers: dict[str, ShareLedger] = {}
        for group in groups:
            values = {"share.auto.offset.reset": "earliest", **group.group_settings}
            world.cluster.change(ConfigsChanged(GROUP_RESOURCE, group.group_id, dict(values)))
            self._ledgers[group.group_id] = ShareLedger(world, group.group_id)
        if world.traces_work:
            world.cluster.shares.watch = self._watch
        if self._topics:
            self._write()

    def _watch(self, progress: Progress) -> None:
        self._ledgers[progress.key.group_id].watch(progress)

    def _write(self) -> None:
        world, now_us = self._world, self._world.environment.now_us
        ends = {}
        for topic in self._topics:
            for number in range(world.partition_count(topic)):
                partition = TopicPartition(topic, number)
                if world.leader_of(topic, number) is not None:
                    ends[partition] = world.topic_logs.end_offset(partition, now_us)
        self._brokers.write_empty(ends)
        world.environment.call_at(now_us + _BATCH_US, self._write)


class ShareConsumerProcess(ClientProcess):
    """One incarnation of a share consumer: poll, process, acknowledge, and poll again.

    Args:
        world: Shared parts of the run.
        spec: The consumer.
        group: The consumer's group.
        on_exit: Called once when the process has ended.
    """

    __slots__ = (
        "_commit_token",
        "_consumer",
        "_is_polling",
        "_is_stopping",
        "_law",
        "_on_exit",
        "_renewed",
        "_slow_us",
        "_spec",
    )

    def __init__(
        self,
        world: World,
        spec: ShareConsumerSpec,
        group: ShareGroupSpec,
        *,
        on_exit: Action,
    ) -> None:
        settings = {
            **group.settings,
            **spec.settings,
            "share.acknowledgement.mode": spec.acknowledges,
        }
        self._consumer = ShareConsumer(
            ShareConsumerConfig.from_settings(settings),
            client_id=spec.name,
            group_id=group.group_id,
            topics=group.topics,
            assignors=(),
            bootstrap=world.bootstrap(),
            member_id=world.new_member_id(),
            jitter=world.choices,
        )
        super().__init__(world, spec.name, group_id=group.group_id, port=self._consumer)
        world.client_ids[self._consumer.member_id] = spec.name
        self._spec = spec
        self._law = spec.processing or PerPoll(spec.processing_ms)
        self._commit_token: int | None = None
        self._is_polling = self._is_stopping = False
        self._renewed: dict[tuple[TopicPartition, int], None] = {}
        """Records whose lock was renewed, until they are accepted."""
        self._slow_us = 0
        self._on_exit = on_exit

    def start(self) -> None:
        """Poll for the first time."""
        self._poll()

    def stop(self) -> None:
        """Close when the application is between two polls; wake up a poll in progress."""
        if not self._is_stopping:
            self._is_stopping = True
            self._later(0, self._wake_up)

    def be_slow(self, for_us: int) -> None:
        """Process longer by the given time after the next poll."""
        self._slow_us += for_us

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to other topics."""
        self._later(0, partial(self._subscribe, topics))

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        self._run(self._consumer.subscribe(topics, self._now_ms()))

    def _wake_up(self) -> None:
        if self._is_polling:
            self._run(self._consumer.wakeup(self._now_ms()))

    def _poll(self) -> None:
        if self._is_stopping:
            self._run(self._consumer.close(self._now_ms(), CLOSE_TIMEOUT_MS))
            return
        self._is_polling = True
        self._run(self._consumer.poll(self._now_ms(), POLL_TIMEOUT_MS))

    def _on_poll_returned(self, error: str | None) -> None:
        self._is_polling = False
        if error is not None and error != WAKEUP:
            self._record(Event.LIFECYCLE, reason_text=f"poll raised {error}")
            self._is_stopping = True
        if self._is_stopping:
            self._later(0, self._poll)
            return
        records = self._consumer.records
        self._tell_delivered(records)
        slow_us, self._slow_us = self._slow_us, 0
        self._later(self._busy_us(records) + slow_us, partial(self._processed, records))

    def _busy_us(self, records: Mapping[TopicPartition, Mapping[int, int]]) -> int:
        """Return how long the application takes for the records of a poll."""
        pace = pace_of(self._law, self._world.choices, self._name)
        percents = self._world.slow_percents.get(self._group_id)
        if percents:
            pace = pace.slowed(max(percents))
        poison = self._world.topic_logs.poison
        if poison:
            runs = [
                Records(partition, first, end)
                for partition, counts in records.items()
                for first, end, _ in _runs(counts)
            ]
            pace = pace._replace(stalls=stalls_in(runs, poison))
        return pace.busy_us(sum(map(len, records.values())))

    def _processed(self, records: Mapping[TopicPartition, Mapping[int, int]]) -> None:
        """Acknowledge what was processed, and commit it as the consumer's policy says."""
        spec, consumer = self._spec, self._consumer
        if spec.acknowledges == "explicit":
            for partition, offsets in records.items():
                for offset, delivery_count in offsets.items():
                    kind = self._fate_of(partition, offset, delivery_count)
                    consumer.acknowledge(partition, offset, kind)
        if records and spec.commits == "sync":
            self._commit_token, effects = consumer.commit_sync(self._now_ms())
            self._run(effects)
            return
        if records and spec.commits == "async":
            self._run(consumer.commit_async(self._now_ms()))
        self._poll()

    def _fate_of(
        self, partition: TopicPartition, offset: int, delivery_count: int
    ) -> AcknowledgeType:
        fates, place = self._spec.fates, (partition, offset)
        if _applies(fates.poison_every, offset):
            return AcknowledgeType.RELEASE
        if _applies(fates.reject_every, offset):
            return AcknowledgeType.REJECT
        if _applies(fates.release_every, offset) and delivery_count == 1:
            return AcknowledgeType.RELEASE
        if _applies(fates.renew_every, offset) and place not in self._renewed:
            self._renewed[place] = None
            return AcknowledgeType.RENEW
        self._renewed.pop(place, None)
        return AcknowledgeType.ACCEPT

    def _on_commit_completed(self, completed: CommitCompleted) -> None:
        if completed.token == self._commit_token:
            self._commit_token = None
            self._later(0, self._poll)

    def _on_callback(self, callback: RunCallback) -> None:
        """Run no callback: the port asks for one only about partitions that were never told."""

    def _on_gone(self) -> None:
        self._on_exit()

    # What is told to the trace.

    def _carry_out(self, effect: WorkerEffect | AcknowledgementsCompleted) -> None:
        if not isinstance(effect, AcknowledgementsCompleted):
            raise InvariantViolation(f"{self._name} asks for {type(effect).__name__}")
        if self._world.traces_work:
            for first, end, number in _runs(effect.types):
                kind = AcknowledgeType(number).name.lower()
                error = {} if effect.error is None else {"error": effect.error}
                self._tell(
                    Event.RECORDS_ACKNOWLEDGED, effect.partition, (first, end), type=kind, **error
                )

    def _tell_delivered(self, records: Mapping[TopicPartition, Mapping[int, int]]) -> None:
        if self._world.traces_work:
            for partition, counts in records.items():
                for first, end, count in _runs(counts):
                    self._tell(
                        Event.RECORDS_DELIVERED, partition, (first, end), deliveries=str(count)
                    )

    def _tell(
        self, event: Event, partition: TopicPartition, span: tuple[int, int], **attrs: str
    ) -> None:
        self._record(
            event,
            member_id=self._consumer.member_id,
            offsets=(OffsetEntry(partition.topic, partition.partition, span[0]),),
            position=span[1],
            attrs=attrs,
        )


def _applies(every: int, offset: int) -> bool:
    return every > 0 and offset % every == 0


def _runs(values: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield consecutive offsets with one value: the first, the one after the last, the value."""
    first = end = value = -1
    for offset, each in values.items():
        if offset != end or each != value:
            if end >= 0:
                yield first, end, value
            first, value = offset, each
        end = offset + 1
    if end >= 0:
        yield first, end, value
