"""WriteTxnMarkers, sent by other brokers, or by an operator to end a hanging transaction.

Source: kafka 4.3, KafkaApis.handleWriteTxnMarkersRequest; WriteTxnMarkersResponse.java.
"""

from typing import Final

from coordinator_sim.broker.contract import Answers, Call, Handlers, Instants
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.scheduler import Jobs
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.broker.transactions.ports import Marker, MarkerWriting
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_A_MARKER: Final = 150
"""Cost of a marker: 60 us (measured); see `log.format.steps`."""


class _Outcomes:
    """The results of one request, by producer."""

    __slots__ = ("_answers", "_found", "_missing", "is_answered_later", "token")

    def __init__(self, token: int, answers: Answers, missing: int) -> None:
        self.token = token
        self.is_answered_later = False
        self._answers = answers
        self._found: dict[int, dict[TopicPartition, ErrorCode]] = {}
        self._missing = missing

    def found(self, producer_id: int, place: TopicPartition, error: ErrorCode) -> None:
        """Add the result of a marker; the last one answers the request if it was parked."""
        self._found.setdefault(producer_id, {})[place] = error
        self._missing -= 1
        if self.is_complete and self.is_answered_later:
            self._answers.answer(self.token, self.response())

    @property
    def is_complete(self) -> bool:
        """Whether all results are known."""
        return self._missing == 0

    def response(self) -> WriteTxnMarkersResponse:
        """Build the response."""
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(producer_id, _by_topic(outcomes))
                for producer_id, outcomes in self._found.items()
            )
        )


class MarkerApi:
    """Answers WriteTxnMarkers.

    Args:
        image: The metadata, which names the replicas.
        access: Authorizes requests.
        jobs: Runs long work in steps, and takes late answers.
        writing: Writes the markers.
    """

    def __init__(
        self, image: MetadataImage, access: Access, jobs: Jobs, writing: MarkerWriting
    ) -> None:
        self._image = image
        self._access = access
        self._jobs = jobs
        self._writing = writing

    def handlers(self) -> Handlers:
        """The handler of WriteTxnMarkers."""
        return {ApiKey.WRITE_TXN_MARKERS: self._jobs.handler(self._written)}

    def _written(self, call: Call[WriteTxnMarkersRequest]) -> Steps[WriteTxnMarkersResponse | None]:
        if not any(
            self._access.allows(call.context, operation, ResourceType.CLUSTER, CLUSTER_NAME)
            for operation in (Operation.ALTER, Operation.CLUSTER_ACTION)
        ):
            return _refused(call.request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        wanted = [
            (marker, TopicPartition(topic.name, index))
            for marker in call.request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        ]
        if any(min(marker.producer_id, marker.producer_epoch) < 0 for marker, _ in wanted):
            # QUIRK: negative ids make no marker; Kafka throws and answers UNKNOWN_SERVER_ERROR.
            return _refused(call.request, ErrorCode.UNKNOWN_SERVER_ERROR)
        outcomes = _Outcomes(call.context.token, self._jobs.answers, len(wanted))
        for marker, place in wanted:
            self._write(call, marker, place, outcomes)
            yield _A_MARKER
        if outcomes.is_complete:
            return outcomes.response()
        outcomes.is_answered_later = True
        return None

    def _write(
        self,
        call: Call[WriteTxnMarkersRequest],
        marker: WritableTxnMarker,
        place: TopicPartition,
        outcomes: _Outcomes,
    ) -> None:
        producer_id = marker.producer_id
        state = self._image.partition(*place)
        if state is None or call.broker_id not in state.replicas:
            outcomes.found(producer_id, place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return

        def done(where: TopicPartition, error: ErrorCode, _now: Instants) -> None:
            outcomes.found(producer_id, where, error)

        end = Marker(
            producer_id=producer_id,
            producer_epoch=marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
        self._writing.write(call.broker_id, place, end, call.now, done)


def _refused(request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse:
    """One error for every partition. Source: WriteTxnMarkersRequest.getErrorResponse."""
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                marker.producer_id,
                tuple(
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        tuple(
                            WritableTxnMarkerPartitionResult(index, error)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


def _by_topic(
    outcomes: dict[TopicPartition, ErrorCode],
) -> tuple[WritableTxnMarkerTopicResult, ...]:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for place, error in outcomes.items():
        found = WritableTxnMarkerPartitionResult(place.partition, error)
        topics.setdefault(place.topic, []).append(found)
    return tuple(WritableTxnMarkerTopicResult(name, tuple(found)) for name, found in topics.items())
