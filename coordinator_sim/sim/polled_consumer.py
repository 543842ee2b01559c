"""A consumer whose application is a thread of its process, which polls when it wants to."""

from collections.abc import Mapping, Sequence
from typing import Final

from coordinator_sim.clients.config import OffsetReset
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clock import Action
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.consumer_settings import is_new
from coordinator_sim.sim.consumers import ConsumerProcess
from coordinator_sim.sim.processing import Records
from coordinator_sim.sim.scenario.settings import SETTINGS, STRATEGY, Scope
from coordinator_sim.sim.scenario.world import ConsumerGroupSpec, ConsumerSpec
from coordinator_sim.sim.world import World
from coordinator_sim.trace.events import Event
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Received

_JAVA_NAMES: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
"""Kafka's classes of assignors -> their names in the protocol."""
_DEFAULT_ASSIGNORS: Final = "range,cooperative-sticky"
_OF_CONSUMERS: Final = frozenset({*SETTINGS[Scope.CONSUMER], "auto.offset.reset"})


class PolledConsumer(ConsumerProcess):
    """A consumer of a workload, in a group or with partitions that it chooses itself.

    Args:
        world: Shared parts of the run.
        settings: Settings by Kafka's names; those that nothing here reads are left out, as Kafka
            does with a warning.
        host: Process that it runs in.
        woken: Called when a call is over, so that the thread which waits for it goes on.

    Raises:
        ConfigError: a setting is out of its bounds, an assignor is unknown, or the group protocol
            is not the classic one.
    """

    __slots__ = ("_gone", "_is_member", "_returned", "_woken", "client_id")

    def __init__(
        self, world: World, settings: Mapping[str, str], *, host: str, woken: Action
    ) -> None:
        self.client_id = settings.get("client.id", host)
        group_id = settings.get("group.id", "")
        own = {name: value for name, value in settings.items() if name in _OF_CONSUMERS}
        if not group_id:
            own["enable.auto.commit"] = "false"
        if is_new(own):
            raise ConfigError(
                f"consumer {self.client_id!r}: group.protocol=consumer is for members of a "
                "scenario's groups; workloads consume with the classic protocol"
            )
        # Kafka's default, which scenarios of their own groups set otherwise.
        own.setdefault("auto.offset.reset", "latest")
        spec = ConsumerSpec(
            name=self.client_id,
            instance_id=settings.get("group.instance.id"),
            rack=settings.get("client.rack"),
            settings=own,
        )
        strategy = settings.get(STRATEGY, _DEFAULT_ASSIGNORS)
        group = ConsumerGroupSpec(
            group_id=group_id,
            topics=(),
            members=(spec,),
            assignors=tuple(_assignor(name) for name in strategy.split(",")),
        )
        self._is_member = False
        self._gone: Pending[bool] = Pending()
        self._returned: Pending[tuple[Records, ...]] = Pending()
        self._woken = woken
        super().__init__(world, spec, group, on_exit=self._ended, host=host)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group of the setting `group.id` at the next polls."""
        self._is_member = True
        self._tell("started")
        self._subscribe(tuple(topics))

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, without being a member of a group."""
        self._run(self._java.assign(partitions, self._now_ms()))

    def seek_to_end(self) -> None:
        """Read what comes after the present end of every assigned partition."""
        self._java.seek_to(self.assignment(), OffsetReset.LATEST)

    def assignment(self) -> Sequence[TopicPartition]:
        """The partitions that it reads at present."""
        return self._consumer.owned_partitions

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic, in order, as the consumer's metadata has them.

        Raises:
            ClientFailed: there is no such topic.
        """
        yield from ()
        return partitions_of(self._world, topic)

    @property
    def _java(self) -> ConsumerCoordinator:
        consumer = self._consumer
        if not isinstance(consumer, ConsumerCoordinator):
            raise InvariantViolation(f"{self.client_id} is not the port of Java's consumer")
        return consumer

    def poll(self, timeout_ms: int) -> Blocking[Sequence[Received]]:
        """Records, as soon as there are any; none after the timeout.

        Raises:
            ClientFailed: the exception that Kafka's consumer throws.
        """
        returned = self._returned = Pending()
        self._poll_timeout_ms = timeout_ms
        self._poll()
        yield Wait(returned)
        if returned.error is not None:
            raise ClientFailed(returned.error)
        return [each for records in returned.result() for each in self._contents(records)]

    def unsubscribe(self) -> Blocking[None]:
        """Give up all partitions, and leave the group."""
        if self._is_alive and not self._is_stopping:
            returned = self._returned = Pending()
            self._run(self._java.unsubscribe(self._now_ms()))
            yield Wait(returned)

    def close(self) -> Blocking[None]:
        """Leave the group and close; a second call does nothing."""
        if self._is_alive and not self._is_stopping:
            self._tell("stopping")
            is_polling = self._is_polling
            self.stop()
            if not is_polling:
                self._close()
        if not self._gone.done:
            yield Wait(self._gone)

    def interrupt(self) -> None:
        """Wake the thread that is polling; the consumer's heartbeats continue."""
        if self._is_polling:
            self._wake_up()

    def _on_poll_returned(self, error: str | None) -> None:
        self._is_polling = False
        taken, self._taken = tuple(self._taken), []
        if self._is_stopping:
            self._close()
            return
        for partition, _, end in taken:
            self._ledger.processed(partition, end)
        self._returned.complete(taken, error)
        self._woken()

    def _contents(self, records: Records) -> list[Received]:
        """The single records of a stretch."""
        partition, first, end = records
        contents = self._world.topic_logs.record
        now_ms = self._now_ms()
        found: list[Received] = []
        for offset in range(first, end):
            record = contents(partition, offset)
            if record is None:
                found.append(Received(partition, offset, now_ms, None, None))
            else:
                found.append(Received(partition, offset, *record))
        return found

    def _tell(self, what: str) -> None:
        """Record a step in the life of a member, as of one that a scenario describes."""
        if self._is_member:
            self._record(Event.LIFECYCLE, reason_text=what, attrs={"process": "1"})

    def _ended(self) -> None:
        self._tell("gone")
        self._gone.complete(value=True)
        self._woken()


def _assignor(name: str) -> str:
    """The name in the protocol of an assignor given by name or by class."""
    given = name.strip()
    return _JAVA_NAMES.get(given.rpartition(".")[2], given)


def partitions_of(world: World, topic: str) -> tuple[TopicPartition, ...]:
    """All partitions of a topic, in order.

    Raises:
        ClientFailed: there is no such topic.
    """
    count = world.partition_count(topic)
    if not count:
        raise ClientFailed(f"there is no topic {topic}")
    return tuple(TopicPartition(topic, number) for number in range(count))
