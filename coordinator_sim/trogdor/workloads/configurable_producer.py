"""ConfigurableProducer: a producer that writes to one topic until it is stopped.

Source: kafka trunk, trogdor/.../trogdor/workload/ConfigurableProducerWorker.java.
"""

from typing import Final

from coordinator_sim.connect.thread import Blocking, Wait
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.payloads import PayloadIterator
from coordinator_sim.trogdor.rates import Throughput, flushes_of, throughput_of
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.topic_specs import TopicsSpec
from coordinator_sim.trogdor.workload_specs import ConfigurableProducerSpec
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Clients, Report
from coordinator_sim.trogdor.workloads.sent_records import ProducingWorkload, SentRecords
from coordinator_sim.trogdor.workloads.topics import prepare_topics

_SEEDS: Final = 1 << 48
_ANY_PARTITION: Final = -1
_NO_THROUGHPUT: Final = "throughputGenerator is absent: say how fast to produce"


class ConfigurableProducer(ProducingWorkload):
    """The workload.

    DEVIATION: without a generator of keys, values or throughput it ends with an error of ours; that
    of Java is the text of a NullPointerException.

    Args:
        _task_id: Id of the task; nothing is named after it.
        spec: What to write.
        clients: Where it runs.
        report: Takes statuses and the end.
    """

    def __init__(
        self, _task_id: str, spec: ConfigurableProducerSpec, clients: Clients, report: Report
    ) -> None:
        super().__init__(clients, report)
        self._spec = spec
        # Java's generators begin their windows when the spec is read.
        given = spec.throughput_generator
        self._throughput = (
            None
            if given is None
            else throughput_of(given, seed=clients.draw(_SEEDS), now_ms=clients.now_ms)
        )

    def _made(self) -> Blocking["_Sending"]:
        topics = (self._spec.active_topic or TopicsSpec()).materialize()
        if len(topics) != 1:
            raise ClientFailed("Can only run against 1 topic.")
        yield from prepare_topics(self._clients, self._report, self._spec, topics)
        (topic,) = topics
        return _Sending(self._spec, topic, self._throughput, self._clients, self._report)


class _Sending:
    """The producer, and what it has written. Source: SendRecords.

    Raises:
        ClientFailed: the producer's settings are refused.
    """

    def __init__(
        self,
        spec: ConfigurableProducerSpec,
        topic: str,
        throughput: Throughput | None,
        clients: Clients,
        report: Report,
    ) -> None:
        self._topic = topic
        given = spec.active_partition
        self._partition = None if given == _ANY_PARTITION else given
        self._throughput = throughput
        self._clients = clients
        self._report = report
        self.is_over = False
        self._records = SentRecords(clients)
        flushes = spec.flush_generator
        self._flushes = None if flushes is None else flushes_of(flushes, seed=clients.draw(_SEEDS))
        self._producer = clients.producer(
            {
                "bootstrap.servers": spec.bootstrap_servers,
                **spec.common_client_conf,
                **spec.producer_conf,
            }
        )
        self._keys = PayloadIterator(spec.key_generator)
        self._values = PayloadIterator(spec.value_generator)

    def publish(self) -> None:
        """Tell the status."""
        self._report.status(jackson.tree(self._records.status()))

    def run(self) -> Blocking[None]:
        """Write until something goes wrong, and end the workload. Source: SendRecords.call."""
        failure = yield from self._send_all()
        yield from self._producer.close()
        self.is_over = True
        self._report.halt(failure)
        self.publish()

    def end(self) -> Blocking[None]:
        """Do what `run` does when it is interrupted."""
        if not self.is_over:
            yield from self._producer.close()
            self.publish()

    def _send_all(self) -> Blocking[str]:
        """Write records; return what went wrong."""
        try:
            while True:
                yield from self._send()
        except (ClientFailed, TrogdorRefusal) as error:
            return str(error)

    def _send(self) -> Blocking[None]:
        """Write one record; flush and wait where that is due. Source: sendMessage."""
        now_ms = self._clients.now_ms
        key, value = self._keys.next(now_ms), self._values.next(now_ms)
        told = self._records.sending()
        yield from self._producer.send(self._topic, self._partition, key, value, told)
        if self._flushes is not None and self._flushes.increment():
            yield from self._producer.flush()
        if self._throughput is None:
            raise ClientFailed(_NO_THROUGHPUT)
        now_ms = self._clients.now_ms
        wait_ms = self._throughput.throttle(now_ms)
        if wait_ms:
            yield Wait(until_ms=now_ms + wait_ms)
