"""A workload's admin client, around confluent-kafka's; see `workloads/clients.py`."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from coordinator_sim.connect.thread import Blocking
from coordinator_sim.live.trogdor.client_settings import native_of_admin, whole_number
from coordinator_sim.live.trogdor.workload_place import (
    DEFAULT_TIMEOUT_MS,
    NOBODY_ANSWERS,
    SLICE_S,
    Errors,
    WorkloadPlace,
    text_of,
)
from coordinator_sim.trogdor.topic_specs import PartitionsSpec
from coordinator_sim.trogdor.workloads.clients import ClientFailed, NotCreated, Settings

T = TypeVar("T")

_MS_PER_S: Final = 1_000
_REQUEST_TIMEOUT_MS: Final = 30_000
_TIMED_OUT: Final = "REQUEST_TIMED_OUT"
_GAP: Final = NotCreated(
    "INVALID_REPLICA_ASSIGNMENT",
    "partitions should be a consecutive 0-based integer sequence",
)


class ConfluentAdmin:
    """An admin client.

    Args:
        place: Where it is.
        settings: By Java's names.

    Raises:
        ClientFailed: the settings are refused.
    """

    def __init__(self, place: WorkloadPlace, settings: Settings) -> None:
        self._place = place
        patience_ms = whole_number(settings, "default.api.timeout.ms", DEFAULT_TIMEOUT_MS)
        self._patience_s = patience_ms / _MS_PER_S
        request_ms = whole_number(settings, "request.timeout.ms", _REQUEST_TIMEOUT_MS)
        self._request_s = request_ms / _MS_PER_S
        self._errors = Errors(place)
        self._client = place.made(native_of_admin(settings), self._errors, AdminClient)

    def create_topics(
        self, topics: Mapping[str, PartitionsSpec]
    ) -> Blocking[Mapping[str, NotCreated | None]]:
        """Ask for new topics.

        Raises:
            ClientFailed: the request cannot be made of the names.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        outcomes: dict[str, NotCreated | None] = {
            name: _GAP for name, spec in topics.items() if _has_gap(spec)
        }
        wanted = [_new_topic(name, topics[name]) for name in topics if name not in outcomes]
        if not wanted:
            return outcomes
        try:
            asked = self._client.create_topics(
                wanted, operation_timeout=self._request_s, request_timeout=self._patience_s
            )
        except (KafkaException, ValueError, TypeError) as error:
            raise ClientFailed(str(error)) from None
        for name, future in asked.items():
            try:
                self._result(future)
            except KafkaException as error:
                outcomes[name] = _not_created(error.args[0])
            else:
                outcomes[name] = None
        return outcomes

    def partition_counts(self, topics: Sequence[str]) -> Blocking[Mapping[str, int | None]]:
        """How many partitions topics have; None for an unknown one.

        Raises:
            ClientFailed: no broker answers, or a topic is refused.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        collection = TopicCollection(list(topics))
        asked = self._client.describe_topics(collection, request_timeout=self._patience_s)
        counts: dict[str, int | None] = {}
        for name, future in asked.items():
            try:
                counts[name] = len(self._result(future).partitions)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._place.failed(error) from None
                counts[name] = None
        return counts

    def describe_cluster(self) -> Blocking[int]:
        """The number of brokers.

        Raises:
            ClientFailed: no broker answers.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        asked = self._client.describe_cluster(request_timeout=self._patience_s)
        try:
            return len(self._result(asked).nodes)
        except KafkaException as error:
            raise self._place.failed(error) from None

    def close(self) -> Blocking[None]:
        """Do nothing: librdkafka's admin client goes with its last user."""
        yield from ()

    def _result(self, future: "Future[T]") -> T:
        """The result of a request; what goes wrong on the way is logged.

        Raises:
            ClientFailed: there will be none.
            Interrupted: the workload is being stopped.
            KafkaException: the request fails.
        """
        while not future.done():
            self._place.threads.outside(partial(wait, [future], SLICE_S))
            self._client.poll(0)
            self._errors.check()
        return future.result()


def _has_gap(spec: PartitionsSpec) -> bool:
    """Whether brokers are named for partitions that do not count from 0."""
    named = sorted(spec.partition_assignments)
    return named != list(range(len(named)))


def _new_topic(name: str, spec: PartitionsSpec) -> NewTopic:
    """A topic to ask for. Source: PartitionsSpec.newTopic."""
    config = dict(spec.configs)
    if spec.partition_assignments:
        brokers = [list(spec.partition_assignments[each]) for each in spec.partition_numbers]
        return NewTopic(name, len(brokers), replica_assignment=brokers, config=config)
    replicas = spec.effective_replication_factor
    return NewTopic(name, spec.effective_num_partitions, replicas, config=config)


def _not_created(error: KafkaError) -> NotCreated:
    name = _TIMED_OUT if error.code() in NOBODY_ANSWERS else error.name()
    return NotCreated(name, text_of(error))
