"""The APIs of idempotent and transactional producers, and those that describe transactions.

This module authorizes requests and reads their fields; `coordinator` decides.

Source: kafka 4.3, KafkaApis.scala: handleInitProducerIdRequest, handleAddPartitionsToTxnRequest,
handleAddOffsetsToTxnRequest, handleEndTxnRequest, handleDescribeTransactionsRequest,
handleListTransactionsRequest.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.broker.contract import Call, Handlers, Instants
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.metadata.topic_operations import INTERNAL_TOPICS
from coordinator_sim.broker.scheduler import Jobs
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.broker.transactions.coordinator import (
    Initialised,
    InitRequest,
    ProducerIdentity,
    TransactionCoordinator,
)
from coordinator_sim.broker.transactions.ending import EndRequest
from coordinator_sim.broker.transactions.inspection import (
    describe_transaction,
    list_transactions,
)
from coordinator_sim.broker.transactions.metadata import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TV_0,
    TV_2,
)
from coordinator_sim.broker.transactions.states import TransactionStates
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from coordinator_sim.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from coordinator_sim.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from coordinator_sim.messages.end_txn import EndTxnRequest, EndTxnResponse
from coordinator_sim.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from coordinator_sim.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

_FENCED_SINCE: Final = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
"""Versions from which on clients know PRODUCER_FENCED; earlier ones get INVALID_PRODUCER_EPOCH."""
_BATCHED_SINCE: Final = 4
"""From this version on, brokers send AddPartitionsToTxn for many transactions at once."""
_BUMPS_EPOCH_SINCE: Final = 5
"""From this version on, EndTxn is of version 2 of transactions."""
_A_TRANSACTION: Final = 150
"""Cost of adding to a transaction: 50 us (measured); see `log.format.steps`."""

Outcomes = Mapping[TopicPartition, ErrorCode]
FindCoordinator = Callable[[int, Instants], TransactionCoordinator]
"""Finds the current coordinator of a broker by its id."""


class TransactionApis:
    """Answers the APIs of transactions, except WriteTxnMarkers.

    Args:
        image: The metadata, with all topics.
        access: Authorizes requests.
        coordinator: See `FindCoordinator`.
        jobs: Runs long work in steps.
        offsets_partitions: `offsets.topic.num.partitions`.
        bumps_epochs: See `TransactionConfig.bumps_epochs`.
    """

    def __init__(
        self,
        image: MetadataImage,
        access: Access,
        coordinator: FindCoordinator,
        jobs: Jobs,
        *,
        offsets_partitions: int,
        bumps_epochs: bool = True,
    ) -> None:
        self._image = image
        self._access = access
        self._jobs = jobs
        self._coordinator = coordinator
        self._offsets_partitions = offsets_partitions
        self._bumps_epochs = bumps_epochs

    def handlers(self) -> Handlers:
        """The handler of each API."""
        return {
            ApiKey.INIT_PRODUCER_ID: self._init_producer_id,
            ApiKey.ADD_PARTITIONS_TO_TXN: self._jobs.handler(self._add_partitions),
            ApiKey.ADD_OFFSETS_TO_TXN: self._add_offsets,
            ApiKey.END_TXN: self._end,
            ApiKey.DESCRIBE_TRANSACTIONS: self._describe,
            ApiKey.LIST_TRANSACTIONS: self._list,
        }

    # -- producers ----------------------------------------------------------------------------

    def _init_producer_id(self, call: Call[InitProducerIdRequest]) -> InitProducerIdResponse:
        request = call.request
        refusal = self._init_refusal(call)
        if refusal is not ErrorCode.NONE:
            return _initialised(call, (refusal, ProducerIdentity()))
        is_known = request.producer_id != NO_PRODUCER_ID
        if is_known != (request.producer_epoch != NO_PRODUCER_EPOCH):
            return _initialised(call, (ErrorCode.INVALID_REQUEST, ProducerIdentity()))
        known = ProducerIdentity(request.producer_id, request.producer_epoch)
        asked = InitRequest(
            transactional_id=request.transactional_id,
            timeout_ms=request.transaction_timeout_ms,
            expected=known if is_known else None,
            enable_two_phase_commit=request.enable2_pc,
            keep_prepared=request.keep_prepared_txn,
        )
        coordinator = self._coordinator(call.broker_id, call.now)
        return _initialised(call, coordinator.init_producer_id(asked, call.now))

    def _init_refusal(self, call: Call[InitProducerIdRequest]) -> ErrorCode:
        transactional_id = call.request.transactional_id
        if transactional_id is None:
            is_allowed = self._may_be_idempotent(call.context)
            return ErrorCode.NONE if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        wanted = [Operation.WRITE]
        if call.request.enable2_pc:
            wanted.append(Operation.TWO_PHASE_COMMIT)
        if all(self._may(call, each, transactional_id) for each in wanted):
            return ErrorCode.NONE
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    def _may_be_idempotent(self, context: RequestContext) -> bool:
        """Whether the sender may get a producer id: IDEMPOTENT_WRITE, or WRITE on any topic."""
        access = self._access
        cluster, topic = ResourceType.CLUSTER, ResourceType.TOPIC
        if access.allows(context, Operation.IDEMPOTENT_WRITE, cluster, CLUSTER_NAME):
            return True
        return access.allows_somewhere(context, Operation.WRITE, topic, self._image.topics)

    def _may(self, call: Call[Any], operation: Operation, transactional_id: str) -> bool:
        kind = ResourceType.TRANSACTIONAL_ID
        return self._access.allows(call.context, operation, kind, transactional_id)

    # -- partitions ---------------------------------------------------------------------------

    def _add_partitions(
        self, call: Call[AddPartitionsToTxnRequest]
    ) -> Steps[AddPartitionsToTxnResponse]:
        request = call.request
        if call.context.api_version < _BATCHED_SINCE:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
            if not self._may(call, Operation.WRITE, transaction.transactional_id):
                error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                outcomes: Outcomes = dict.fromkeys(_places(transaction), error)
            else:
                outcomes = self._added(call, transaction)
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_by_topic(outcomes))
        operation, cluster = Operation.CLUSTER_ACTION, ResourceType.CLUSTER
        if not self._access.allows(call.context, operation, cluster, CLUSTER_NAME):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        # DEVIATION: if a transactional id is named twice, the last entry counts, as in Kafka, but
        # it is answered once. Kafka repeats the answer, so its size is the square of the request's.
        asked = {each.transactional_id: each for each in request.transactions}
        results = []
        for transactional_id, transaction in asked.items():
            added = _by_topic(self._added(call, transaction))
            results.append(AddPartitionsToTxnResult(transactional_id, added))
            yield _A_TRANSACTION
        return AddPartitionsToTxnResponse(results_by_transaction=tuple(results))

    def _added(
        self,
        call: Call[AddPartitionsToTxnRequest],
        transaction: AddPartitionsToTxnTransaction,
    ) -> Outcomes:
        places = _places(transaction)
        refused = {
            place: error
            for place in places
            if (error := self._place_error(call, place)) is not ErrorCode.NONE
        }
        if refused:
            left = (place for place in places if place not in refused)
            return {**refused, **dict.fromkeys(left, ErrorCode.OPERATION_NOT_ATTEMPTED)}
        transactional_id = transaction.transactional_id
        producer = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
        coordinator = self._coordinator(call.broker_id, call.now)
        if transaction.verify_only:
            return coordinator.verify_partitions(transactional_id, producer, places)
        is_new = call.context.api_version >= _BATCHED_SINCE and self._bumps_epochs
        error = coordinator.add_partitions(
            transactional_id,
            producer,
            places,
            call.now,
            client_version=TV_2 if is_new else TV_0,
        )
        return dict.fromkeys(places, _told(call, error))

    def _place_error(
        self, call: Call[AddPartitionsToTxnRequest], place: TopicPartition
    ) -> ErrorCode:
        """The error of a partition; clients need WRITE, and may not add internal topics."""
        if call.context.api_version < _BATCHED_SINCE:
            is_internal = place.topic in INTERNAL_TOPICS
            operation, kind = Operation.WRITE, ResourceType.TOPIC
            if is_internal or not self._access.allows(call.context, operation, kind, place.topic):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        is_there = self._image.partition(place.topic, place.partition) is not None
        return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _add_offsets(self, call: Call[AddOffsetsToTxnRequest]) -> AddOffsetsToTxnResponse:
        request = call.request
        transactional_id, group_id = request.transactional_id, request.group_id
        if not self._may(call, Operation.WRITE, transactional_id):
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return AddOffsetsToTxnResponse(error_code=error)
        access = self._access
        if not access.allows(call.context, Operation.READ, ResourceType.GROUP, group_id):
            return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        index = partition_for(group_id, self._offsets_partitions)
        error = self._coordinator(call.broker_id, call.now).add_partitions(
            transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            [TopicPartition(OFFSETS_TOPIC, index)],
            call.now,
            client_version=TV_0,
        )
        return AddOffsetsToTxnResponse(error_code=_told(call, error))

    # -- ends ---------------------------------------------------------------------------------

    def _end(self, call: Call[EndTxnRequest]) -> EndTxnResponse:
        request = call.request
        if not self._may(call, Operation.WRITE, request.transactional_id):
            return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        bumps = call.context.api_version >= _BUMPS_EPOCH_SINCE
        asked = EndRequest(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            committed=request.committed,
            client_version=TV_2 if bumps else TV_0,
        )
        error, identity = self._coordinator(call.broker_id, call.now).end(asked, call.now)
        return EndTxnResponse(
            error_code=_told(call, error),
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
        )

    # -- looking ------------------------------------------------------------------------------

    def _describe(self, call: Call[DescribeTransactionsRequest]) -> DescribeTransactionsResponse:
        states = self._coordinator(call.broker_id, call.now).states
        return DescribeTransactionsResponse(
            transaction_states=tuple(
                self._described(call, states, each) for each in call.request.transactional_ids
            )
        )

    def _described(
        self,
        call: Call[DescribeTransactionsRequest],
        states: TransactionStates,
        transactional_id: str,
    ) -> TransactionState:
        if not self._may(call, Operation.DESCRIBE, transactional_id):
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return TransactionState(error, transactional_id)
        found = describe_transaction(states, transactional_id)
        operation, kind = Operation.DESCRIBE, ResourceType.TOPIC
        topics = (
            each
            for each in found.topics
            if self._access.allows(call.context, operation, kind, each.topic)
        )
        return replace(found, topics=tuple(topics))

    def _list(self, call: Call[ListTransactionsRequest]) -> ListTransactionsResponse:
        states = self._coordinator(call.broker_id, call.now).states
        listed = list_transactions(states, call.request, call.now.group_ms)
        allowed = (
            each
            for each in listed.transaction_states
            if self._may(call, Operation.DESCRIBE, each.transactional_id)
        )
        return replace(listed, transaction_states=tuple(allowed))


def _told(call: Call[Any], error: ErrorCode) -> ErrorCode:
    """An error translated to one that the request's version knows."""
    is_new = call.context.api_version >= _FENCED_SINCE[call.api]
    if error is ErrorCode.PRODUCER_FENCED and not is_new:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def _initialised(call: Call[InitProducerIdRequest], outcome: Initialised) -> InitProducerIdResponse:
    error, identity = outcome
    return InitProducerIdResponse(
        error_code=_told(call, error),
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
    )


def _places(transaction: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    ]


def _by_topic(outcomes: Outcomes) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for place, error in outcomes.items():
        found = AddPartitionsToTxnPartitionResult(place.partition, error)
        topics.setdefault(place.topic, []).append(found)
    return tuple(
        AddPartitionsToTxnTopicResult(name, tuple(found)) for name, found in topics.items()
    )
