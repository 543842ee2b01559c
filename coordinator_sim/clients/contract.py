"""The interface of every client port, so that one driver can operate any of them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from coordinator_sim.clients.effects import Effect, Effects
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.requests import Response

E_co = TypeVar("E_co", covariant=True)


class DrivenPort(Protocol[E_co]):
    """The part of a port that its driver uses: a consumer's, or a whole Connect worker.

    `now_ms` never decreases between calls. Deadlines are instants on the caller's clock.
    """

    def expire(self, now_ms: int) -> tuple[E_co, ...]:
        """Fire every deadline up to now, in a defined order."""
        ...

    def on_connected(self, node_id: int, now_ms: int) -> tuple[E_co, ...]:
        """Handle the opening of a connection that the port asked for."""
        ...

    def on_disconnected(self, node_id: int, now_ms: int) -> tuple[E_co, ...]:
        """Handle a lost or failed connection; its requests will not be answered."""
        ...

    def on_response(self, correlation_id: int, response: Response, now_ms: int) -> tuple[E_co, ...]:
        """Handle a response. Unknown correlation ids (timed out before) are ignored."""
        ...

    def on_unexpected_response(self, node_id: int, now_ms: int) -> tuple[E_co, ...]:
        """Handle a response that is not the one to the oldest request of its connection.

        A client that finds requests by their correlation ids is told of every response by
        `on_response` instead.
        """
        ...

    def next_deadline_ms(self) -> int | None:
        """The one alarm that the driver arms; None when no deadline is pending."""
        ...


class ClientPort(DrivenPort[Effect], Protocol):
    """A sans-I/O client coordinator: two machines (application thread, heartbeat thread) in one."""

    def poll(self, now_ms: int, timeout_ms: int) -> Effects:
        """Begin the application's `poll(timeout)`; ends with `PollReturned` at the latest then."""
        ...

    def callback_completed(self, token: int, outcome: str | None, now_ms: int) -> Effects:
        """Continue after the application's callback; `outcome` names its exception, or is None."""
        ...

    def wakeup(self, now_ms: int) -> Effects:
        """Interrupt the current or the next poll, as `KafkaConsumer.wakeup` does."""
        ...

    def close(self, now_ms: int, timeout_ms: int) -> Effects:
        """Leave the group where the client would; ends with `Closed`."""
        ...


class ConsumerPort(ClientPort, Protocol):
    """A port that consumes: the calls of an application to any consumer, whichever client it is."""

    @property
    def member_id(self) -> str:
        """Member id given by the coordinator; empty before, and after a reset."""
        ...

    @property
    def generation_id(self) -> int:
        """Generation the member believes to be in; -1 for none."""
        ...

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """Partitions assigned now, by topic and partition."""
        ...

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Next offset of every assigned partition whose position is known."""
        ...

    @property
    def fetchable(self) -> dict[TopicPartition, int]:
        """Positions of the partitions to fetch from."""
        ...

    @property
    def max_poll_records(self) -> int:
        """Records that a poll returns at most, 1 and up (`max.poll.records`).

        librdkafka and franz-go have no such setting: their application asks for a number.
        """
        ...

    @property
    def awaits_records(self) -> bool:
        """Whether records that arrive now would end the application's poll."""
        ...

    def advance_position(self, partition: TopicPartition, offset: int) -> None:
        """Record consumption up to `offset`; ignored where the partition is not assigned."""
        ...

    def advance_all(self, partitions: Collection[TopicPartition], offset: int) -> bool:
        """Record consumption up to `offset` of all partitions that are assigned.

        Returns:
            Whether these are all of them; otherwise nothing is recorded.
        """
        ...

    def fetch_completed(self, now_ms: int) -> Effects:
        """Return from a poll that only waits for records."""
        ...

    def topic_unknown(self, now_ms: int) -> Effects:
        """Ask for metadata, as a topic that is fetched does not exist any more."""
        ...

    def positions_found(self, found: Mapping[TopicPartition, int], now_ms: int) -> Effects:
        """Adopt the answer to `ResetPositions`."""
        ...

    def subscribe(self, topics: Sequence[str], now_ms: int) -> Effects:
        """Replace the subscription."""
        ...

    def commit(
        self, offsets: Mapping[TopicPartition, int], *, sync: bool, now_ms: int
    ) -> tuple[int, Effects]:
        """Commit the offsets; the commit ends with `CommitCompleted` and the returned token."""
        ...
