"""A workload's producer, around confluent-kafka's; see `workloads/clients.py`."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.live.background import in_background
from coordinator_sim.live.trogdor import workload_place
from coordinator_sim.live.trogdor.client_settings import native_of_producer, whole_number
from coordinator_sim.live.trogdor.workload_threads import now_ms
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Settings, Told

_ANY_PARTITION: Final = -1
_DELIVERIES_S: Final = 0.1
_TRY_AGAIN_MS: Final = 100


class ConfluentProducer:
    """A producer; a thread of its own takes the outcomes of its records.

    Args:
        place: Where it is.
        settings: By Java's names.

    Raises:
        ClientFailed: the settings are refused.
    """

    def __init__(self, place: workload_place.WorkloadPlace, settings: Settings) -> None:
        self._place = place
        self._patience_ms = whole_number(
            settings, "max.block.ms", workload_place.DEFAULT_TIMEOUT_MS
        )
        self._errors = workload_place.Errors(place)
        self._client = place.made(native_of_producer(settings), self._errors, Producer)
        self._is_closed = False
        self._is_in_transaction = False
        in_background("deliveries", self._deliver)

    def _deliver(self) -> None:
        while not self._is_closed:
            self._client.poll(_DELIVERIES_S)

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic, which is waited for.

        Raises:
            ClientFailed: it does not come within `max.block.ms`, or no broker answers.
        """
        yield from ()
        until_ms = now_ms() + self._patience_ms
        while not (found := self._place.partitions(self._client, topic, until_ms)):
            if now_ms() >= until_ms:
                raise ClientFailed(
                    f"Topic {topic} not present in metadata after {self._patience_ms} ms."
                )
            self._place.threads.await_outcome(now_ms() + _TRY_AGAIN_MS)
        return found

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        told: Told,
    ) -> Blocking[None]:
        """Hand a record over; see `workloads/clients.py`.

        Raises:
            ClientFailed: the producer takes no records any more.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        if partition is not None and partition < 0:
            raise ClientFailed(
                f"Invalid partition: {partition}. Partition number should always be non-negative "
                "or null."
            )
        if self._errors.failure is not None:
            told(self._errors.failure)
            return
        until_ms = now_ms() + self._patience_ms
        number = _ANY_PARTITION if partition is None else partition
        delivered = partial(self._delivered, told)
        # Ends because time goes on.
        while True:
            try:
                self._client.produce(topic, value, key, number, on_delivery=delivered)
            except BufferError:
                if now_ms() >= until_ms:
                    told(f"The buffer was full for {self._patience_ms} ms (max.block.ms).")
                    return
                self._place.threads.await_outcome(until_ms)
            except KafkaException as error:
                failure = self._place.failed(error)
                if workload_place.is_final(error.args[0]) or error.args[0].code() == _WRONG_STATE:
                    raise failure from None
                told(str(failure))
                return
            else:
                break
        # Outcomes that are there are taken now, not after a burst of sends.
        self._client.poll(0)

    def _delivered(self, told: Told, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._place.heard(error)
        failure = None if error is None else workload_place.text_of(error)
        self._place.threads.call(partial(told, failure))

    def flush(self) -> Blocking[None]:
        """Wait until every record has its outcome.

        Raises:
            Interrupted: the workload is being stopped.
        """
        yield from ()
        # Ends because each record has an outcome after `delivery.timeout.ms`.
        while self._place.threads.outside(partial(self._client.flush, workload_place.SLICE_S)):
            pass

    def init_transactions(self) -> Blocking[None]:
        """Fence older producers of the transactional id.

        Raises:
            ClientFailed: it cannot within `max.block.ms`.
        """
        yield from ()
        self._patiently(self._client.init_transactions)

    def begin_transaction(self) -> None:
        """Begin a transaction.

        Raises:
            ClientFailed: one is open, or the producer is fenced.
        """
        try:
            self._client.begin_transaction()
        except KafkaException as error:
            raise self._place.failed(error) from None
        self._is_in_transaction = True

    def end_transaction(self, *, committed: bool) -> Blocking[None]:
        """Commit or abort the transaction.

        Raises:
            ClientFailed: it cannot within `max.block.ms`.
        """
        yield from ()
        client = self._client
        self._patiently(client.commit_transaction if committed else client.abort_transaction)
        self._is_in_transaction = False

    def close(self) -> Blocking[None]:
        """Abort an open transaction, wait for all outcomes, and close."""
        if self._is_closed:
            return
        if self._is_in_transaction:
            # Java logs what goes wrong, and closes.
            with suppress(ClientFailed):
                yield from self.end_transaction(committed=False)
        yield from self.flush()
        self._is_closed = True

    def _patiently(self, call: Callable[[float], object]) -> None:
        """Make a call about transactions until it is through; each slice takes the same one up.

        Raises:
            ClientFailed: it fails, or takes longer than `max.block.ms`.
            Interrupted: the workload is being stopped.
        """
        until_ms = now_ms() + self._patience_ms
        while True:
            try:
                self._place.threads.outside(partial(call, workload_place.SLICE_S))
            except KafkaException as error:
                reason = error.args[0]
                may_go_on = reason.retriable() or reason.code() in workload_place.NOBODY_ANSWERS
                if not may_go_on or now_ms() >= until_ms:
                    raise self._place.failed(error) from None
                self._place.threads.await_outcome(now_ms() + _TRY_AGAIN_MS)
            else:
                return


_WRONG_STATE: Final = KafkaError._STATE  # noqa: SLF001 - librdkafka's own errors begin so
