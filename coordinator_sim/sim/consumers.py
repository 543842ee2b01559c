"""A consumer process: the application's loop around the port of a consumer coordinator.

Poll, process what the poll returned, poll again. Records are only counted: every partition
receives them at the constant rate of its topic. Fatal errors of a poll end the application.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.config import ConsumerConfig
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.effects import CallbackKind, RunCallback
from coordinator_sim.clients.exceptions import COMMIT_FAILED, RETRIABLE, WAKEUP
from coordinator_sim.clients.port_core import NOTIFICATION_TOKEN
from coordinator_sim.clock import Action
from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.scenario.world import ConsumerGroupSpec, ConsumerSpec
from coordinator_sim.sim.client_process import ClientProcess
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, OffsetEntry

POLL_TIMEOUT_MS: Final = 500
"""What the application gives `poll`; short enough to notice a stop request soon."""
MAX_POLL_RECORDS: Final = 500
"""Default of `max.poll.records`."""
CLOSE_TIMEOUT_MS: Final = 30_000
"""Default timeout of `KafkaConsumer.close`."""
_FETCH_US: Final = 1_000
"""From a poll to its records when there are some: about a round trip to a partition leader."""
_US_PER_S: Final = 1_000_000
_SURVIVABLE: Final = (WAKEUP, COMMIT_FAILED)

_OWNERSHIP_EVENTS: Final = {
    CallbackKind.PARTITIONS_REVOKED: Event.REVOKED,
    CallbackKind.PARTITIONS_LOST: Event.LOST,
}


class ConsumerProcess(ClientProcess):
    """One incarnation of a consumer.

    Args:
        world: What the run shares.
        spec: The consumer.
        group: Its group.
        records_per_s: Production rate of one partition, by topic.
        when_gone: Called once when the process has ended.
    """

    __slots__ = (
        "_callback_us",
        "_consumer",
        "_is_polling",
        "_is_stopping",
        "_processing_us",
        "_rates",
        "_slow_us",
        "_when_gone",
    )

    def __init__(
        self,
        world: World,
        spec: ConsumerSpec,
        group: ConsumerGroupSpec,
        *,
        records_per_s: Mapping[str, int],
        when_gone: Action,
    ) -> None:
        self._consumer = ConsumerCoordinator(
            ConsumerConfig.from_settings(client_settings(spec, group)),
            client_id=spec.name,
            group_id=group.group_id,
            topics=group.topics if spec.topics is None else spec.topics,
            assignors=tuple(make_consumer_assignor(name) for name in group.assignors),
            bootstrap=world.bootstrap(),
            jitter=world.choices,
        )
        super().__init__(world, spec.name, group_id=group.group_id, port=self._consumer)
        self._rates = records_per_s
        self._processing_us = max(spec.processing_ms, 1) * US_PER_MS
        self._callback_us = spec.callback_ms * US_PER_MS
        self._slow_us = 0
        self._is_polling = False
        self._is_stopping = False
        self._when_gone = when_gone

    def start(self) -> None:
        """Poll for the first time."""
        self._poll()

    def stop(self) -> None:
        """Close when the application is between two polls; a poll in progress is woken up."""
        if self._is_stopping:
            return
        self._is_stopping = True
        if self._is_polling:
            self._later(0, self._wake_up)

    def be_slow(self, for_us: int) -> None:
        """Process for so much longer after the next poll."""
        self._slow_us += for_us

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to other topics."""
        self._later(0, partial(self._subscribe, topics))

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        self._run(self._consumer.subscribe(topics, self._now_ms()))

    def _wake_up(self) -> None:
        if self._is_polling:
            self._run(self._consumer.wakeup(self._now_ms()))

    # The application's loop.

    def _poll(self) -> None:
        if self._is_stopping:
            self._run(self._consumer.close(self._now_ms(), CLOSE_TIMEOUT_MS))
            return
        self._is_polling = True
        self._run(self._consumer.poll(self._now_ms(), POLL_TIMEOUT_MS))
        if self._is_polling and self._consumer.positions:
            self._later(_FETCH_US, self._fetch)

    def _fetch(self) -> None:
        """Records arrived, if there are any: they end the poll."""
        if self._is_polling and self._take_records():
            self._run(self._consumer.fetch_completed(self._now_ms()))

    def _take_records(self) -> bool:
        """Move positions over up to `MAX_POLL_RECORDS` records; whether there were any."""
        now_us = self._world.environment.now_us
        room = MAX_POLL_RECORDS
        for partition, position in self._consumer.positions.items():
            end = self._rates.get(partition.topic, 0) * now_us // _US_PER_S
            taken = min(end - position, room)
            if taken > 0:
                self._consumer.advance_position(partition, position + taken)
                room -= taken
        return room < MAX_POLL_RECORDS

    def _on_poll_returned(self, error: str | None) -> None:
        self._is_polling = False
        if error is not None and error not in RETRIABLE and error not in _SURVIVABLE:
            self._record(Event.LIFECYCLE, reason_text=f"poll raised {error}")
            self._is_stopping = True
        busy_us = self._processing_us + self._slow_us
        self._slow_us = 0
        self._later(0 if self._is_stopping else busy_us, self._poll)

    def _on_callback(self, callback: RunCallback) -> None:
        event = _OWNERSHIP_EVENTS.get(callback.kind)
        if event is not None and callback.partitions:
            self._record_handover(event, callback.partitions)
        if callback.token != NOTIFICATION_TOKEN:
            self._later(self._callback_us, partial(self._complete_callback, callback.token))

    def _on_gone(self) -> None:
        self._when_gone()

    def _record_handover(self, event: Event, partitions: tuple[TopicPartition, ...]) -> None:
        """Record what is given up, and how far each partition was consumed."""
        consumer = self._consumer
        self._record(
            event,
            generation=consumer.generation_id,
            member_id=consumer.member_id,
            attrs={"resources": " ".join(tp.resource() for tp in partitions)},
        )
        positions = consumer.positions
        entries = tuple(
            OffsetEntry(tp.topic, tp.partition, positions[tp])
            for tp in partitions
            if tp in positions
        )
        if entries:
            self._record(Event.POSITION, member_id=consumer.member_id, offsets=entries)


def client_settings(spec: ConsumerSpec, group: ConsumerGroupSpec) -> dict[str, str]:
    """The settings of one consumer by Kafka's names, its own over its group's."""
    settings = {**group.settings, **spec.settings}
    if spec.instance_id is not None:
        settings["group.instance.id"] = spec.instance_id
    if spec.rack is not None:
        settings["client.rack"] = spec.rack
    return settings
