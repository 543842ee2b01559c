"""Produce: append records to logs, and acknowledge them as `acks` demands.

Source: kafka trunk, KafkaApis.handleProduceRequest; ReplicaManager.handleProduceAppend,
appendRecords, appendToLocalLog; kafka 4.1 for topic ids.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.purgatory import Place, Purgatory
from coordinator_sim.broker.records.pending_produce import (
    Outcomes,
    PendingProduce,
    ProducePlace,
    produce_response,
)
from coordinator_sim.broker.records.produced_records import Walk, edge_error, first_magic, walk
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Jobs, WakeBy
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.broker.transactions.verification import TransactionalWrite, TransactionGate
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import is_internal
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.log.log_values import Appended
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.produce import ProduceRequest, ProduceResponse
from coordinator_sim.messages.schema import ZERO_UUID

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The one client that may produce to internal topics. Source: AdminUtils.ADMIN_CLIENT_ID."""
TOPIC_IDS_SINCE: Final = 13
EPOCH_BUMP_SINCE: Final = 12
"""From this version on, producers know CONCURRENT_TRANSACTIONS. Source: KIP-890, TV2."""

_ALL_IN_SYNC: Final = -1
_NO_ACKS: Final = 0
_ACKS: Final = frozenset({_ALL_IN_SYNC, _NO_ACKS, 1})
_COST_OF_APPEND: Final = 20
"""Cost of appending to one partition, beside checking its records; see `log.format.steps`."""
_COORDINATOR_TROUBLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)

Touched = Callable[[Place], None]
Records = dict[ProducePlace, bytes]


class ProduceRules(Struct, frozen=True, kw_only=True):
    """Rules of Produce that differ between Kafka releases.

    Args:
        conceals_topics: Whether topics without DESCRIBE are answered as unknown.
        names_invalid_records: Whether INVALID_RECORD is used, or CORRUPT_MESSAGE in its place.
    """

    conceals_topics: bool = False
    names_invalid_records: bool = True


class Appending(NamedTuple):
    """The records of one partition on their way into its log.

    Args:
        call: The request.
        produced: The partition.
        records: Its records.
        met: Batch heads and faults found in the records.
        verified_in: The turn (`Jobs.turn`) in which the transaction was verified.
    """

    call: Call[ProduceRequest]
    produced: ProducePlace
    records: bytes
    met: Walk
    verified_in: int


class ProduceApi:
    """Answers Produce.

    Args:
        partitions: The partitions that the brokers host.
        access: Authorizes requests.
        jobs: Runs long work in steps, and takes late answers.
        wake_by: Arms the alarm for the end of a wait, by the wall clock.
        gate: Verifies transactions.
        touched: Called for each partition that was appended to.
        rules: Rules that differ between releases.
    """

    __slots__ = (
        "_access",
        "_gate",
        "_jobs",
        "_partitions",
        "_rules",
        "_touched",
        "purgatory",
    )

    def __init__(  # noqa: PLR0913 - what the API needs, by keyword
        self,
        partitions: ReplicaManager,
        access: Access,
        jobs: Jobs,
        *,
        wake_by: WakeBy,
        gate: TransactionGate,
        touched: Touched,
        rules: ProduceRules,
    ) -> None:
        self._partitions = partitions
        self._access = access
        self._jobs = jobs
        self._gate = gate
        self._touched = touched
        self._rules = rules
        self.purgatory = Purgatory[Place](wake_by)

    def handlers(self) -> Handlers:
        """The handler of Produce."""
        return {ApiKey.PRODUCE: self._jobs.handler(self._steps)}

    def _steps(self, call: Call[ProduceRequest]) -> Steps[ProduceResponse | None]:
        """Handle the whole request; checks made before a pause are repeated at the append."""
        asked = self._asked(call)
        walks: dict[ProducePlace, Walk] = {}
        for produced, records in asked.items():
            walks[produced] = yield from walk(records)
        refusal = self._refusal(call, walks)
        if refusal is not None:
            return self._finish(call, dict.fromkeys(asked, refusal))
        refused, appendable = self._sorted(call, asked, walks)
        turn = self._jobs.turn
        outcomes = self._verified(call, {each: walks[each] for each in appendable})
        for produced in outcomes:
            del appendable[produced]
        if call.request.acks not in _ACKS:
            outcomes |= dict.fromkeys(appendable, Appended(error=ErrorCode.INVALID_REQUIRED_ACKS))
            appendable = {}
        for produced, records in appendable.items():
            appending = Appending(call, produced, records, walks[produced], verified_in=turn)
            outcomes[produced] = yield from self._append(appending)
            yield _COST_OF_APPEND
        outcomes |= refused
        if call.request.acks == _ALL_IN_SYNC:
            return self._when_safe(call, outcomes)
        return self._finish(call, outcomes)

    # -- before the logs -------------------------------------------------------------------

    def _asked(self, call: Call[ProduceRequest]) -> Records:
        """The records by partition; if one is named twice, the last wins, as in Kafka's map."""
        image = self._partitions.image
        by_id = call.context.api_version >= TOPIC_IDS_SINCE
        asked: Records = {}
        for topic in call.request.topic_data:
            topic_id, name = ZERO_UUID, topic.name
            if by_id:
                topic_id = topic.topic_id
                name = image.topic_names.get(topic_id, "")
            for each in topic.partition_data:
                asked[ProducePlace(topic_id, name, each.index)] = each.records or b""
        return asked

    def _refusal(
        self, call: Call[ProduceRequest], walks: dict[ProducePlace, Walk]
    ) -> Appended | None:
        """The error of the whole request; None to go on."""
        is_transactional = False
        for met in walks.values():
            if not met.heads and met.fault is not None:
                return Appended(error=ErrorCode.CORRUPT_MESSAGE, message=met.fault)
            if met.heads and met.heads[0].is_transactional:
                is_transactional = True
                break
        name = call.request.transactional_id
        if not is_transactional or (
            name is not None
            and self._access.allows(
                call.context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name
            )
        ):
            return None
        return Appended(error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    def _sorted(
        self, call: Call[ProduceRequest], asked: Records, walks: dict[ProducePlace, Walk]
    ) -> tuple[Outcomes, Records]:
        """The partitions refused before the log is asked, and the records of the others."""
        refused: Outcomes = {}
        appendable: Records = {}
        for produced, records in asked.items():
            error = self._edge_error(call, produced, walks[produced])
            if error is ErrorCode.NONE:
                appendable[produced] = records
            else:
                refused[produced] = Appended(error=error)
        return refused, appendable

    def _edge_error(
        self, call: Call[ProduceRequest], produced: ProducePlace, met: Walk
    ) -> ErrorCode:
        version = call.context.api_version
        topic = produced.topic
        if version >= TOPIC_IDS_SINCE and not topic:
            return ErrorCode.UNKNOWN_TOPIC_ID
        is_known = self._partitions.image.partition(*produced.place) is not None
        if not self._access.is_open:
            if self._rules.conceals_topics and not (
                is_known and self._may(call, Operation.DESCRIBE, topic)
            ):
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not self._may(call, Operation.WRITE, topic):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if not is_known:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return edge_error(version, met)

    def _may(self, call: Call[ProduceRequest], operation: Operation, topic: str) -> bool:
        return self._access.allows(call.context, operation, ResourceType.TOPIC, topic)

    def _verified(self, call: Call[ProduceRequest], walks: dict[ProducePlace, Walk]) -> Outcomes:
        """Partitions whose transaction is refused. Source: maybeStartTransactionVerification..."""
        transactional = {
            produced: head
            for produced, met in walks.items()
            for head in met.heads
            if head.is_transactional and head.producer_id >= 0
        }
        producers = {(head.producer_id, head.producer_epoch) for head in transactional.values()}
        if len(producers) > 1:
            message = "Transactional records contained more than one producer ID"
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
            return dict.fromkeys(walks, Appended(error=error, message=message))
        refused: Outcomes = {}
        for produced, head in transactional.items():
            log = self._partitions.hosted(call.broker_id, produced.place)
            if isinstance(log, ErrorCode):
                refused[produced] = Appended(error=log)
                continue
            if log.has_open_transaction(head.producer_id, head.producer_epoch):
                continue
            write = TransactionalWrite(
                # Before version 3 requests name none, and `_refusal` checks only the first batch.
                transactional_id=call.request.transactional_id or "",
                producer_id=head.producer_id,
                producer_epoch=head.producer_epoch,
                topic=produced.topic,
                partition=produced.partition,
                api_version=call.context.api_version,
                now=call.now,
            )
            error = self._gate.verify_or_add(write)
            if error is not ErrorCode.NONE:
                refused[produced] = unverified(error, call.context.api_version)
        return refused

    # -- the logs --------------------------------------------------------------------------

    def _append(self, appending: Appending) -> Steps[Appended]:
        """Append the records of one partition; return the result.

        Leadership, replicas and transaction are checked again if other requests ran since the
        transaction was verified, while records of this or an earlier partition were checked.
        """
        call, produced, records = appending.call, appending.produced, appending.records
        place = produced.place
        log = self._writable_log(call, place, records)
        if isinstance(log, Appended):
            return log
        now_ms, version = call.now.group_ms, call.context.api_version
        checked = yield from log.checking(records, now_ms=now_ms, produce_version=version)
        if self._jobs.turn != appending.verified_in:
            if not self._is_the_topic(produced):
                return Appended(error=ErrorCode.UNKNOWN_TOPIC_ID)
            refused = self._verified(call, {produced: appending.met})
            if refused:
                return refused[produced]
            log = self._writable_log(call, place, records)
            if isinstance(log, Appended):
                return log
        if self._partitions.before_append is not None:
            self._partitions.before_append(place)
        append = partial(
            log.append_checked,
            checked,
            now_ms=now_ms,
            leader_epoch=self._partitions.image.topics[place[0]].partitions[place[1]].leader_epoch,
            produce_version=version,
        )
        outcome = self._partitions.attempt(place, append)
        if isinstance(outcome, ErrorCode):
            return Appended(error=outcome)
        if outcome.error is ErrorCode.MESSAGE_TOO_LARGE and outcome.message:
            self._partitions.trouble(f"Produce refused: {outcome.message}")
        if outcome.error is ErrorCode.INVALID_RECORD and not self._rules.names_invalid_records:
            return replace(outcome, error=ErrorCode.CORRUPT_MESSAGE)
        return outcome

    def _is_the_topic(self, produced: ProducePlace) -> bool:
        """Whether the topic still has the id that the request names, if it names one."""
        names = self._partitions.image.topic_names
        return produced.topic_id == ZERO_UUID or names.get(produced.topic_id) == produced.topic

    def _writable_log(
        self, call: Call[ProduceRequest], place: Place, records: bytes
    ) -> PartitionLog | Appended:
        """The log that the broker may append to, or the error."""
        if is_internal(place[0]) and call.context.client_id != ADMIN_CLIENT_ID:
            return Appended(error=ErrorCode.INVALID_TOPIC_EXCEPTION)
        log = self._partitions.local_log(call.broker_id, place)
        if isinstance(log, ErrorCode):
            return Appended(error=log)
        if self._partitions.append_failure is not ErrorCode.NONE:
            error = self._partitions.append_failure
            return Appended(error=error, log_start_offset=log.log_start_offset)
        if call.request.acks == _ALL_IN_SYNC and not self._partitions.has_enough_replicas(place):
            error = ErrorCode.NOT_ENOUGH_REPLICAS
            return Appended(error=error, log_start_offset=log.log_start_offset)
        if log.config.message_format_magic < CURRENT_MAGIC <= first_magic(records):
            # A broker with an older log format does not know the newer one.
            return Appended(error=ErrorCode.CORRUPT_MESSAGE)
        return log

    # -- the answer ------------------------------------------------------------------------

    def _when_safe(self, call: Call[ProduceRequest], outcomes: Outcomes) -> ProduceResponse | None:
        """The answer, once the high watermark has passed the appended records."""
        waiting = {
            produced: outcome.last_offset + 1
            for produced, outcome in outcomes.items()
            if outcome.error is ErrorCode.NONE
        }
        produce = PendingProduce(call, self._partitions, self._jobs.answers, outcomes, waiting)
        if produce.is_settled():
            return self._finish(call, produce.outcomes)
        places = [produced.place for produced in outcomes]
        deadline_ms = self._jobs.now.wall_ms + max(call.request.timeout_ms, 0)
        self.purgatory.watch(produce, places, deadline_ms, call.connection)
        self._tell(outcomes)
        return None

    def _finish(self, call: Call[ProduceRequest], outcomes: Outcomes) -> ProduceResponse | None:
        """The answer now; with acks=0 none, and the connection is closed on an error."""
        self._tell(outcomes)
        if call.request.acks != _NO_ACKS:
            return produce_response(call, outcomes, self._partitions)
        if any(outcome.error is not ErrorCode.NONE for outcome in outcomes.values()):
            self._jobs.answers.close(call.context.token)
        else:
            self._jobs.answers.answer(call.context.token, None)
        return None

    def _tell(self, outcomes: Outcomes) -> None:
        for produced, outcome in outcomes.items():
            if outcome.last_offset >= 0:
                self._touched(produced.place)


def unverified(error: ErrorCode, version: int) -> Appended:
    """The result a producer gets for an error of the transaction coordinator.

    Source: ReplicaManager.handleProduceAppend, postVerificationCallback.
    """
    if error is ErrorCode.INVALID_TXN_STATE:
        return Appended(error=error, message="Partition was not added to the transaction")
    is_unknown = error is ErrorCode.CONCURRENT_TRANSACTIONS and version < EPOCH_BUMP_SINCE
    if error in _COORDINATOR_TROUBLE or is_unknown:
        return Appended(
            error=ErrorCode.NOT_ENOUGH_REPLICAS,
            message="Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error.name}",
        )
    return Appended(error=error)
