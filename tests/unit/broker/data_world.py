"""The data APIs on a metadata image and logs in memory, without sockets."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.contract import Call, Instants
from coordinator_sim.broker.metadata.changes import LeaderElected, TopicCreated
from coordinator_sim.broker.metadata.image import TOPIC_RESOURCE, MetadataImage
from coordinator_sim.broker.records.families import DataApis, DataSettings
from coordinator_sim.broker.replicas.log_manager import LogManager
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Jobs, Scheduler
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import Authorizer
from coordinator_sim.broker.settings import Endpoint
from coordinator_sim.broker.transactions.verification import TransactionGate
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.log.format.record_batches import Record, RecordBatch, encode_record_batch
from coordinator_sim.log.log_config import LogConfig, config_of
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.codec.compiler import request_reader, response_writer
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame

START_MS = 1_000_000
TOPIC_ID = b"\x07" * 16


def batch_of(*values: bytes, **settings: Any) -> bytes:  # noqa: ANN401 - fields of any type
    """One batch of magic 2 with these values, as a producer sends it."""
    records = tuple(
        Record(offset=index, timestamp_ms=START_MS + index, key=None, value=value)
        for index, value in enumerate(values)
    )
    fields: dict[str, Any] = {
        "base_offset": 0,
        "last_offset": len(values) - 1,
        "records": records,
        "base_timestamp_ms": START_MS,
        "max_timestamp_ms": START_MS + len(values) - 1,
        **settings,
    }
    return encode_record_batch(RecordBatch(**fields))


class DataWorld:
    """Brokers 1 and 2, topic `t` with two partitions led by 1 and by 2, replicas on both.

    Attributes:
        answers: Late answers by token.
        closed: Tokens whose connections were closed.
        troubles: Lines for the server's log.
    """

    def __init__(
        self,
        *,
        authorizer: Authorizer | None = None,
        gate: TransactionGate | None = None,
        settings: DataSettings | None = None,
        base: LogConfig | None = None,
        new_store: Callable[[str, int, bytes], MemoryStore] = lambda *_: MemoryStore(),
    ) -> None:
        self.image = MetadataImage()
        self.logs = LogManager(
            self.image,
            new_store,
            lambda topic: config_of(self.image.configs_of(TOPIC_RESOURCE, topic), base),
        )
        self.answers: dict[int, Struct | None] = {}
        self.closed: list[int] = []
        self.failed: list[tuple[str, int]] = []
        self.troubles: list[str] = []
        self.now_ms = START_MS
        self._token = 0
        self._ids = 0
        partitions = ReplicaManager(
            self.image,
            self.logs.log_of,
            endpoint=lambda broker_id, _: Endpoint("host", 9090 + broker_id),
            storage_failed=lambda place, _: self.failed.append(place),
            wanted_in_sync=self._wanted_in_sync,
            trouble=self.troubles.append,
        )
        self.jobs = Jobs(self)
        self.scheduler = Scheduler()
        self.apis = DataApis(
            partitions,
            Access(authorizer),
            self.jobs,
            scheduler=self.scheduler,
            draw=self._draw,
            cluster_events=ClusterEvents(),
            gate=gate,
            settings=settings,
        )
        self.scheduler.watch(self.apis)
        self.handlers = self.apis.handlers()
        self.image.apply(TopicCreated("t", TOPIC_ID, ((1, 2), (2, 1))))

    def _wanted_in_sync(self, topic: str, replica_count: int) -> int:
        settings = self.image.configs_of(TOPIC_RESOURCE, topic)
        return min(int(settings.get("min.insync.replicas", "1")), replica_count)

    def _draw(self, low: int, high: int) -> int:
        self._ids += 1
        return low + self._ids % (high - low)

    def answer(self, token: int, response: Struct | None) -> None:
        """As `Answers.answer`."""
        self.answers[token] = response

    def close(self, token: int) -> None:
        """As `Answers.close`."""
        self.closed.append(token)

    def log(self, topic: str = "t", partition: int = 0) -> PartitionLog:
        """The log of a partition."""
        log = self.logs.log_of(topic, partition)
        assert log is not None
        return log

    def elect(self, leader_id: int, topic: str = "t", partition: int = 0) -> None:
        """Another leader, at the next epoch."""
        epoch = self.image.topics[topic].partitions[partition].leader_epoch + 1
        self.image.apply(LeaderElected(topic, partition, leader_id, epoch))
        self.apis.touched((topic, partition))

    def call(
        self, api: ApiKey, version: int, request: Fields, *, broker_id: int = 1, connection: int = 1
    ) -> tuple[int, Fields | None]:
        """The token and the answer, None when it comes later; both pass through their bytes."""
        self._token += 1
        header = RequestHeader(api_key=api, api_version=version, correlation_id=self._token)
        _, message = request_reader(api, version)(request_frame(header, request))
        context = RequestContext(token=self._token, api_version=version, client_id="test")
        call = Call(
            broker_id=broker_id,
            api=api,
            request=message,
            context=context,
            now=Instants(self.now_ms, self.now_ms),
            connection=connection,
        )
        return self._token, told(api, version, self.handlers[api](call))

    def late(self, api: ApiKey, version: int, token: int) -> Fields | None:
        """The late answer of that token."""
        return told(api, version, self.answers[token])

    def pass_time(self, ms: int) -> None:
        """Let both clocks go on."""
        self.now_ms += ms
        self.scheduler.expire(Instants(self.now_ms, self.now_ms))

    # -- requests ------------------------------------------------------------------------

    def produce(
        self,
        records: bytes | None,
        *,
        partition: int = 0,
        version: int = 12,
        **fields: Any,  # noqa: ANN401 - fields of any type
    ) -> tuple[int, Fields | None]:
        """Send records to a partition of `t`; the token and the answer."""
        broker_id = fields.pop("broker_id", 1)
        topic: Fields = {"partitionData": [{"index": partition, "records": records}]}
        topic["name"] = fields.pop("topic", "t")
        topic["topicId"] = fields.pop("topic_id", TOPIC_ID)
        request = {"acks": 1, "timeoutMs": 1_000, "topicData": [topic], **fields}
        return self.call(ApiKey.PRODUCE, version, request, broker_id=broker_id)

    def produced(self, records: bytes | None, **fields: Any) -> Fields:  # noqa: ANN401 - fields of any type
        """What an answered Produce says of its only partition."""
        _, response = self.produce(records, **fields)
        assert response is not None
        return partition_of(response)

    def fetch(
        self,
        offset: int = 0,
        *,
        partition: int = 0,
        version: int = 12,
        **fields: Any,  # noqa: ANN401 - fields of any type
    ) -> tuple[int, Fields | None]:
        """Fetch from a partition of `t`; the token and the answer."""
        broker_id = fields.pop("broker_id", 1)
        connection = fields.pop("connection", 1)
        terms: Fields = {
            "partition": partition,
            "fetchOffset": offset,
            "partitionMaxBytes": fields.pop("partition_max_bytes", 1 << 20),
        }
        if version >= 9:
            terms["currentLeaderEpoch"] = fields.pop("epoch", -1)
        if version >= 12:
            terms["lastFetchedEpoch"] = fields.pop("last_epoch", -1)
        topic = {"topic": "t", "topicId": fields.pop("topic_id", TOPIC_ID), "partitions": [terms]}
        request = {"maxWaitMs": 0, "minBytes": 1, "topics": [topic], **fields}
        return self.call(ApiKey.FETCH, version, request, broker_id=broker_id, connection=connection)

    def fetched(self, offset: int = 0, **fields: Any) -> Fields:  # noqa: ANN401 - fields of any type
        """What an answered Fetch says of its only partition."""
        _, response = self.fetch(offset, **fields)
        assert response is not None
        return partition_of(response)


def told(api: ApiKey, version: int, response: Struct | None) -> Fields | None:
    """An answer as a client reads it."""
    if response is None:
        return None
    return read_response_frame(api, version, response_writer(api, version)(0, response))[1]


def partition_of(response: Fields) -> Fields:
    """The only partition of an answer."""
    (topic,) = response["responses"] if "responses" in response else response["topics"]
    (partition,) = (
        topic["partitionResponses"] if "partitionResponses" in topic else topic["partitions"]
    )
    return dict(partition)
