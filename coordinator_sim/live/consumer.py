"""A consumer in a real group: the application's loop around the port of a consumer coordinator.

The loop polls, takes records, and polls again. Membership and commits are the port's; records come
from `records.RecordReader`, or there are none where its library is not installed.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.clients.config import ConsumerConfig, OffsetReset
from coordinator_sim.clients.consumer_coordinator import ConsumerCoordinator
from coordinator_sim.clients.effects import (
    CallbackKind,
    PollReturned,
    ResetPositions,
    RunCallback,
)
from coordinator_sim.clients.exceptions import COMMIT_FAILED, RETRIABLE, WAKEUP
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.port_core import NOTIFICATION_TOKEN
from coordinator_sim.connect.effects import WorkerEffect
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.live.chance import SystemChance
from coordinator_sim.live.driver import Audience, PortLoop, now_ms
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

if TYPE_CHECKING:
    # Without the library for records a member still keeps its membership.
    from coordinator_sim.live.records import RecordRange, RecordReader

POLL_TIMEOUT_MS: Final = 500
"""Timeout that the application passes to `poll`."""
CLOSE_TIMEOUT_MS: Final = 30_000
"""Default timeout of `KafkaConsumer.close`."""

_FETCH_S: Final = 0.2
_IDLE_S: Final = 0.1
_SURVIVABLE: Final = (WAKEUP, COMMIT_FAILED)
_WORDS: Final = {
    CallbackKind.PARTITIONS_ASSIGNED: ("ASSIGNED", "assigned"),
    CallbackKind.PARTITIONS_REVOKED: ("REVOKED", "revoked"),
    CallbackKind.PARTITIONS_LOST: ("LOST", "lost"),
}


class ConsumerOptions(Struct, frozen=True, kw_only=True):
    """Options of a consumer.

    Args:
        topics: Topics by name; empty for a pattern.
        pattern: A regular expression for whole names, instead of topics.
        settings: Settings by Kafka's names, such as `session.timeout.ms`.
        assignors: Assignors in order of preference.
    """

    bootstrap: tuple[Node, ...]
    group_id: str
    topics: tuple[str, ...]
    client_id: str
    pattern: str = ""
    assignors: tuple[str, ...] = ("range",)
    settings: dict[str, str] = {}


class ConsumerMember(PortLoop):
    """One consumer, from its first poll to its last.

    Args:
        options: Options of the consumer.
        reader: Source of records; None to keep membership alone.
        audience: Receives the member's events.

    Raises:
        ConfigError: a setting or an assignor is unknown or out of bounds.
    """

    def __init__(
        self, options: ConsumerOptions, reader: "RecordReader | None", audience: Audience
    ) -> None:
        self._consumer = ConsumerCoordinator(
            ConsumerConfig.from_settings(options.settings),
            client_id=options.client_id,
            group_id=options.group_id,
            topics=options.topics,
            assignors=tuple(make_consumer_assignor(name) for name in options.assignors),
            bootstrap=options.bootstrap,
            jitter=SystemChance(),
        )
        super().__init__(
            self._consumer, options.bootstrap, client_id=options.client_id, audience=audience
        )
        if options.pattern:
            # No connection exists yet: there are no effects to carry out.
            self._consumer.subscribe_pattern(options.pattern, now_ms())
        self._reader = reader
        self._fetching: asyncio.Task[None] | None = None
        self._lookups: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self._fatal_error: str | None = None

    @property
    def fatal_error(self) -> str | None:
        """Exception that ended the consumer; None where it was asked to end."""
        return self._fatal_error

    def stop(self) -> None:
        """Close after the poll in progress, which is woken up."""
        if self._is_stopping:
            return
        self._is_stopping = True
        if self._consumer.is_in_call:
            self._turn(lambda: self._consumer.wakeup(now_ms()))

    def _start(self) -> None:
        if self._reader is not None:
            self._fetching = self._loop.create_task(self._fetch_on(self._reader))
        self._poll()

    async def _clean_up(self) -> None:
        self._end()
        if self._fetching is not None:
            await self._fetching
        await asyncio.gather(*self._lookups)
        if self._reader is not None:
            await asyncio.to_thread(self._reader.close)

    # The application's loop.

    def _poll(self) -> None:
        if self._is_stopping:
            self._run(self._consumer.close(now_ms(), CLOSE_TIMEOUT_MS))
        else:
            self._run(self._consumer.poll(now_ms(), POLL_TIMEOUT_MS))

    def _carry_out(self, effect: WorkerEffect) -> None:
        match effect:
            case PollReturned(error=error):
                self._on_poll_returned(error)
            case RunCallback():
                self._on_callback(effect)
            case ResetPositions(partitions=partitions, to=to):
                self._lookups.append(self._loop.create_task(self._look_up(partitions, to)))
            case _:
                pass  # commits end silently: their answers are reported

    def _on_poll_returned(self, error: str | None) -> None:
        if error is not None and error not in RETRIABLE and error not in _SURVIVABLE:
            self._tell("FAILED", f"poll raised {error}", error=error)
            self._fatal_error = error
            self._is_stopping = True
        self._soon(self._poll)

    def _on_callback(self, callback: RunCallback) -> None:
        words = _WORDS.get(callback.kind)
        if words is not None:
            self._tell_of_partitions(*words, callback.partitions)
        elif callback.kind is CallbackKind.POLL_TIMEOUT:
            self._tell("POLL_TIMEOUT", "not polled for max.poll.interval.ms: leaving the group")
        if callback.token != NOTIFICATION_TOKEN:
            self._soon(partial(self._complete, callback.token))

    def _complete(self, token: int) -> None:
        self._run(self._consumer.callback_completed(token, None, now_ms()))

    def _tell_of_partitions(
        self, kind: str, word: str, partitions: Sequence[TopicPartition]
    ) -> None:
        names = [f"{tp.topic}-{tp.partition}" for tp in partitions]
        listed = " ".join(names) or "nothing"
        owned = [f"{tp.topic}-{tp.partition}" for tp in self._consumer.owned_partitions]
        self._tell(
            kind,
            f"{word} {listed}",
            generation=self._consumer.generation_id,
            partitions=names,
            owned=owned,
        )

    # Records.

    async def _look_up(self, partitions: tuple[TopicPartition, ...], to: OffsetReset) -> None:
        """Find where partitions begin or end; a member without reader begins at 0."""
        left = partitions
        while left and not self._ended.done():
            if self._reader is None:
                found = dict.fromkeys(left, 0)
            else:
                found = await asyncio.to_thread(self._reader.offsets_at, left, to)
            self._turn(partial(self._consumer.positions_found, found, now_ms()))
            left = tuple(tp for tp in left if tp not in found)
            if left:
                await asyncio.sleep(_IDLE_S)

    async def _fetch_on(self, reader: "RecordReader") -> None:
        while not self._ended.done():
            positions = self._takeable()
            if not positions:
                await asyncio.sleep(_IDLE_S)
                continue
            try:
                ranges = await asyncio.to_thread(reader.fetch, positions, _FETCH_S)
            except DataError as error:
                self._fail(error)
            else:
                self._guarded(partial(self._take, ranges))

    def _takeable(self) -> dict[TopicPartition, int]:
        """Return where records may be taken; empty during a rebalance and once closing began.

        A cooperative member could go on, but what it consumes after the commit of its revoked
        partitions would be consumed twice.
        """
        if self._is_stopping or self._consumer.state is not MemberState.STABLE:
            return {}
        return self._consumer.fetchable

    def _take(self, ranges: "Sequence[RecordRange]") -> None:
        """Consume what is still assigned; late records belong to the next owner."""
        positions = self._takeable()
        taken = [
            each
            for each in ranges
            if each.partition in positions and each.first_offset >= positions[each.partition]
        ]
        for each in taken:
            self._consumer.advance_position(each.partition, each.last_offset + 1)
        if taken:
            self._tell_of_records(taken)
            self._run(self._consumer.fetch_completed(now_ms()))

    def _tell_of_records(self, taken: "Sequence[RecordRange]") -> None:
        count = sum(each.count for each in taken)
        listed = " ".join(
            f"{each.partition.topic}-{each.partition.partition}:"
            f"{each.first_offset}..{each.last_offset}"
            for each in taken
        )
        self._tell(
            "CONSUMED",
            f"consumed {count} records {listed}",
            count=count,
            ranges={
                f"{each.partition.topic}-{each.partition.partition}": [
                    each.first_offset,
                    each.last_offset,
                ]
                for each in taken
            },
        )
