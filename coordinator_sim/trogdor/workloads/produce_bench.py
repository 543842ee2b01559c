"""ProduceBench: a producer that writes at a rate, in transactions if wanted.

Source: kafka trunk, trogdor/.../trogdor/workload/ProduceBenchWorker.java.
"""

from collections.abc import Sequence
from itertools import cycle

from msgspec.structs import asdict

from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.payloads import PayloadIterator
from coordinator_sim.trogdor.rates import THROTTLE_PERIOD_MS, Throttle, per_period
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.transactions import TransactionAction, transactions_of
from coordinator_sim.trogdor.workload_specs import ProduceBenchSpec
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Clients, Report, Settings
from coordinator_sim.trogdor.workloads.pace import throttled
from coordinator_sim.trogdor.workloads.sent_records import (
    ProducingWorkload,
    SentRecords,
    SentStatus,
)
from coordinator_sim.trogdor.workloads.topics import partitions_of, prepare_topics


class ProducedStatus(SentStatus, frozen=True, rename="camel"):
    """What was sent so far, and how many transactions were committed."""

    transactions_committed: int


class ProduceBench(ProducingWorkload):
    """The workload.

    Args:
        _task_id: Id of the task; nothing is named after it.
        spec: What to write.
        clients: Where it runs.
        report: Takes statuses and the end.
    """

    def __init__(
        self, _task_id: str, spec: ProduceBenchSpec, clients: Clients, report: Report
    ) -> None:
        super().__init__(clients, report)
        self._spec = spec

    def _made(self) -> Blocking["_Sending"]:
        spec = self._spec
        active = spec.active_topics.materialize()
        if not active:
            raise ClientFailed("You must specify at least one active topic.")
        topics = active | spec.inactive_topics.materialize()
        yield from prepare_topics(self._clients, self._report, spec, topics)
        return _Sending(spec, partitions_of(active), self._clients, self._report)


class _Sending:
    """The producer, and what it has written. Source: SendRecords.

    Raises:
        ClientFailed: the producer's settings are refused.
    """

    def __init__(
        self,
        spec: ProduceBenchSpec,
        partitions: Sequence[TopicPartition],
        clients: Clients,
        report: Report,
    ) -> None:
        self._spec = spec
        self._clients = clients
        self._report = report
        self.is_over = False
        self._records = SentRecords(clients)
        self._committed = 0
        generator = spec.transaction_generator
        self._transactions = None if generator is None else transactions_of(generator)
        self._producer = clients.producer(producer_settings(spec, clients.unique()))
        self._keys = PayloadIterator(spec.key_generator)
        self._values = PayloadIterator(spec.value_generator)
        most = per_period(spec.target_messages_per_sec, THROTTLE_PERIOD_MS)
        self._throttle = Throttle(most, THROTTLE_PERIOD_MS)
        self._flush = None if spec.skip_flush else self._producer.flush
        self._partitions = cycle(partitions)

    def publish(self) -> None:
        """Tell the status."""
        sent = asdict(self._records.status())
        status = ProducedStatus(**sent, transactions_committed=self._committed)
        self._report.status(jackson.tree(status))

    def run(self) -> Blocking[None]:
        """Write all records, and end the workload. Source: SendRecords.call."""
        failure = yield from self._send_all()
        if failure is not None and self._transactions is not None:
            failure = (yield from self._abort()) or failure
        yield from self._producer.close()
        self.is_over = True
        if failure is not None:
            self._report.halt(failure)
        self.publish()
        self._report.halt()

    def end(self) -> Blocking[None]:
        """Do what `run` does when it is interrupted."""
        if self.is_over:
            return
        if self._transactions is not None:
            yield from self._abort()
        yield from self._producer.close()
        self.publish()

    def _send_all(self) -> Blocking[str | None]:
        """Write all records; return what went wrong."""
        sent, most = 0, self._spec.max_messages
        try:
            if self._transactions is not None:
                yield from self._producer.init_transactions()
            while sent < most:
                if not (yield from self._took_action()):
                    yield from self._send()
                    sent += 1
            # A transaction that is full now is committed, as no record comes after it.
            yield from self._took_action()
        except (ClientFailed, TrogdorRefusal) as error:
            return str(error)
        return None

    def _took_action(self) -> Blocking[bool]:
        """Begin or end a transaction if that is due. Source: takeTransactionAction."""
        if self._transactions is None:
            return False
        match self._transactions.next_action(self._clients.now_ms):
            case TransactionAction.NO_OP:
                return False
            case TransactionAction.BEGIN_TRANSACTION:
                self._producer.begin_transaction()
            case TransactionAction.COMMIT_TRANSACTION:
                yield from self._producer.end_transaction(committed=True)
                self._committed += 1
            case TransactionAction.ABORT_TRANSACTION:
                yield from self._producer.end_transaction(committed=False)
        return True

    def _send(self) -> Blocking[None]:
        """Write one record to the partition whose turn it is."""
        now_ms = self._clients.now_ms
        topic, number = next(self._partitions)
        partition = None if self._spec.use_configured_partitioner else number
        key, value = self._keys.next(now_ms), self._values.next(now_ms)
        yield from self._producer.send(topic, partition, key, value, self._records.sending())
        yield from throttled(self._throttle, self._clients, self._flush)

    def _abort(self) -> Blocking[str | None]:
        """Abort the transaction; return what went wrong."""
        try:
            yield from self._producer.end_transaction(committed=False)
        except ClientFailed as error:
            return str(error)
        return None


def producer_settings(spec: ProduceBenchSpec, unique: str) -> Settings:
    """Settings of the producer: the worker's own, then the common ones, then the producer's.

    Args:
        spec: Of the workload.
        unique: What the transactional id ends with, where there are transactions.
    """
    transactional = spec.transaction_generator is not None
    own = {"transactional.id": f"produce-bench-transaction-id-{unique}"} if transactional else {}
    return {
        "bootstrap.servers": spec.bootstrap_servers,
        **own,
        **spec.common_client_conf,
        **spec.producer_conf,
    }
