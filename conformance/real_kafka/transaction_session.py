"""One story about transactions at one broker: its requests, and its normalized answers."""

import json
from collections.abc import Callable
from typing import Any, Final, Protocol

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.record_batches import Record, RecordBatch, encode_record_batch
from coordinator_sim_conformance.field_frames import Fields

TOPIC: Final = "stories"
PARTITIONS: Final = 3
PROPERTIES: Final = {
    "num.partitions": str(PARTITIONS),
    "transaction.state.log.num.partitions": "5",
    "offsets.topic.num.partitions": "5",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
"""Settings of a real broker."""
_RETRIED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
PATIENCE: Final = 200
"""Number of checks before waiting is given up."""
PAUSE_MS: Final = 50
Producer = tuple[int, int]
"""Producer id and epoch."""


class Transport(Protocol):
    """A connection to a broker."""

    def call(self, api: ApiKey, version: int, fields: Fields) -> Fields:
        """Return the answer to a request."""
        ...

    def wait(self, duration_ms: int) -> None:
        """Let time pass."""
        ...


class Session:
    """One story at one broker.

    Args:
        transport: Connection to the broker.
        story: Name of the story; begins every transactional id.
        versions: Newest version of each API that is recorded.
    """

    def __init__(self, transport: Transport, story: str, versions: dict[ApiKey, int]) -> None:
        self._transport = transport
        self._story = story
        self._ids: dict[int, str] = {-1: "none"}
        self.versions = versions
        self.lines: list[str] = []

    def call(self, api: ApiKey, version: int, **fields: Any) -> Fields:  # noqa: ANN401 - any field
        """Send a request, and record it with its answer; versions not offered are left out."""
        if version > self.versions[api]:
            return {}
        answer = self._transport.call(api, version, fields)
        self.lines.append(
            json.dumps(
                {
                    "api": api.name,
                    "version": version,
                    "asked": self._plain("", fields),
                    "answered": self._plain("", answer),
                }
            )
        )
        return answer

    def ask(self, api: ApiKey, version: int, **fields: Any) -> Fields:  # noqa: ANN401 - any field
        """Send a request without recording it."""
        return self._transport.call(api, version, fields)

    def wait(self, duration_ms: int) -> None:
        """Let time pass."""
        self._transport.wait(duration_ms)

    def name(self, transactional_id: str) -> str:
        """Return a transactional id of this story alone."""
        return f"{self._story}-{transactional_id}"

    def _plain(self, name: str, value: Any) -> Any:  # noqa: ANN401 - any field
        """Rename or remove values that a broker chooses."""
        if isinstance(value, dict):
            return {
                key: self._plain(key, each) for key, each in value.items() if key not in _DROPPED
            }
        if isinstance(value, list):
            return _sorted([self._plain(name, each) for each in value])
        if isinstance(value, bytes):
            return len(value) if name == "records" else value.hex()
        if name in _IDS:
            return self._ids.setdefault(value, f"id {len(self._ids)}")
        if name in _TIMES:
            return value if value < 0 else "a time"
        return value

    # -- common requests -------------------------------------------------------------------

    def settled(self, transactional_id: str) -> None:
        """Wait until no end of a transaction is in progress."""
        for _ in range(PATIENCE):
            found = self.ask(
                ApiKey.DESCRIBE_TRANSACTIONS, 0, transactionalIds=[self.name(transactional_id)]
            )
            if not found["transactionStates"][0]["transactionState"].startswith("Prepare"):
                return
            self.wait(PAUSE_MS)
        raise AssertionError(f"{transactional_id} stays prepared")

    def init(
        self,
        transactional_id: str | None,
        version: int = 4,
        *,
        timeout_ms: int = 60_000,
        **more: int,
    ) -> Producer:
        """Send InitProducerId."""
        told = None if transactional_id is None else self.name(transactional_id)
        found = self.call(
            ApiKey.INIT_PRODUCER_ID,
            version,
            transactionalId=told,
            transactionTimeoutMs=timeout_ms,
            **more,
        )
        return found.get("producerId", -1), found.get("producerEpoch", -1)

    def add(
        self, transactional_id: str, producer: Producer, *partitions: int, version: int = 3
    ) -> None:
        """Send AddPartitionsToTxn, in the form of clients."""
        self.add_of(transactional_id, producer, {TOPIC: list(partitions)}, version=version)

    def add_of(
        self,
        transactional_id: str,
        producer: Producer,
        topics: dict[str, list[int]],
        *,
        version: int = 3,
    ) -> None:
        """Send AddPartitionsToTxn of any topics."""
        self.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            version,
            v3AndBelowTransactionalId=self.name(transactional_id),
            v3AndBelowProducerId=producer[0],
            v3AndBelowProducerEpoch=producer[1],
            v3AndBelowTopics=[
                {"name": name, "partitions": indexes} for name, indexes in topics.items()
            ],
        )

    def end(
        self, transactional_id: str, producer: Producer, *, committed: bool, version: int = 3
    ) -> Producer:
        """Send EndTxn; from version 5 on, return the identity to continue with."""
        found = self.call(
            ApiKey.END_TXN,
            version,
            transactionalId=self.name(transactional_id),
            producerId=producer[0],
            producerEpoch=producer[1],
            committed=committed,
        )
        self.settled(transactional_id)
        return found.get("producerId", -1), found.get("producerEpoch", -1)

    def describe(self, *transactional_ids: str) -> None:
        """Send DescribeTransactions."""
        names = [self.name(each) for each in transactional_ids]
        self.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactionalIds=names)

    def produce(
        self,
        transactional_id: str,
        producer: Producer,
        partition: int,
        sequence: int,
        version: int,
    ) -> None:
        """Send one record of a transaction."""
        data = {"index": partition, "records": _batch(producer, sequence)}
        self.call(
            ApiKey.PRODUCE,
            version,
            transactionalId=self.name(transactional_id),
            acks=-1,
            timeoutMs=10_000,
            topicData=[{"name": TOPIC, "partitionData": [data]}],
        )

    def ends(self, *partitions: int) -> None:
        """Ask for the end offsets of partitions, for readers of committed records and for all."""
        for isolation in (0, 1):
            self.call(
                ApiKey.LIST_OFFSETS,
                4,
                replicaId=-1,
                isolationLevel=isolation,
                topics=[
                    {
                        "name": TOPIC,
                        "partitions": [
                            {"partitionIndex": each, "timestamp": -1, "currentLeaderEpoch": -1}
                            for each in partitions
                        ],
                    }
                ],
            )


_DROPPED: Final = frozenset(
    {"throttleTimeMs", "logAppendTimeMs", "leaderEpoch", "transactionalIdPattern"}
)
_IDS: Final = frozenset({"producerId", "v3AndBelowProducerId"})
_TIMES: Final = frozenset({"transactionStartTimeMs", "timestamp"})


def _sorted(values: list[Any]) -> list[Any]:
    """Sort lists in an order of our own: Kafka's is that of a hash map."""
    return sorted(values, key=lambda each: json.dumps(each, sort_keys=True))


def _batch(producer: Producer, sequence: int) -> bytes:
    return encode_record_batch(
        RecordBatch(
            base_offset=0,
            last_offset=0,
            records=(Record(offset=0, timestamp_ms=1_000, key=None, value=b"v"),),
            base_timestamp_ms=1_000,
            max_timestamp_ms=1_000,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=True,
        )
    )


def prepare(transport: Transport) -> None:
    """Have a broker create its internal topics and the one that the stories write to."""
    session = Session(transport, "prepare", {})
    for key_type in (0, 1):
        _until_fine(
            session,
            lambda kind=key_type: session.ask(  # type: ignore[misc]
                ApiKey.FIND_COORDINATOR, 2, key="any", keyType=kind
            ),
        )
    _until_created(session)
    # A broker allocates its first producer ids on the first request for one.
    _until_fine(
        session,
        lambda: session.ask(
            ApiKey.INIT_PRODUCER_ID, 0, transactionalId=None, transactionTimeoutMs=1
        ),
    )
    for number in range(10):
        # Every partition of the state log is loaded when some id of it can be described.
        name = str(number)
        _until_fine(
            session,
            lambda name=name: session.ask(  # type: ignore[misc]
                ApiKey.DESCRIBE_TRANSACTIONS, 0, transactionalIds=[name]
            )["transactionStates"][0],
        )


def _until_created(session: Session) -> None:
    for _ in range(PATIENCE):
        (topic,) = session.ask(
            ApiKey.METADATA,
            4,
            topics=[{"name": TOPIC}],
            allowAutoTopicCreation=True,
        )["topics"]
        if topic["errorCode"] == 0 and all(each["errorCode"] == 0 for each in topic["partitions"]):
            return
        session.wait(PAUSE_MS)
    raise AssertionError(f"{TOPIC} is not there")


def _until_fine(session: Session, ask: Callable[[], Fields]) -> None:
    for _ in range(PATIENCE):
        if ErrorCode(ask()["errorCode"]) not in _RETRIED:
            return
        session.wait(PAUSE_MS)
    raise AssertionError("a coordinator is not there")
