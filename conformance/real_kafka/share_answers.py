"""Raw requests of share groups to one broker, and its answers as lines that can be compared.

`share_story` says what is asked: the same of real brokers and of ours.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.data_questions import batch

SETTINGS: Final = {
    "group.share.max.size": "4",
    "group.share.max.share.sessions": "4",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.num.partitions": "1",
}
"""Of the brokers."""
TOPICS: Final = {"orders": 2, "bills": 1, "doomed": 1, "cut": 1}
"""Topics, with their numbers of partitions."""
GROUP: Final = "app"
RENEWS_SINCE: Final = 2
"""First version of ShareFetch and ShareAcknowledge that renews locks, and acquires by a mode."""
BIG: Final = 1 << 20
_NOBODYS: Final = b"\1" * 16
_PATIENCE: Final = 60
PAUSE_MS: Final = 250
_WRITTEN_MS: Final = 100
_PRODUCE_VERSION: Final = 9
_RETRIED: Final = frozenset({14, 15, 16, 3, 5, 6})
"""Errors of a broker that is not quite ready."""


class Connection(Protocol):
    """A connection to a broker."""

    def call(self, api: ApiKey, version: int, fields: Fields) -> Fields:
        """Return the answer to a request."""
        ...

    def wait(self, duration_ms: int) -> None:
        """Let time pass."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class ShareAsking:
    """Asks one broker, and remembers what it answered.

    Args:
        connect: Opens another connection.
        version: Of ShareFetch and ShareAcknowledge.
    """

    def __init__(self, connect: Callable[[], Connection], version: int) -> None:
        self._connect = connect
        self._version = version
        self._main = connect()
        self._ids: dict[str, bytes] = {}
        self._lines: list[str] = []

    def _say(self, label: str, answer: Fields) -> None:
        told = _plain("", answer, self._ids)
        self._lines.append(json.dumps([label, told], separators=(",", ":")))

    def _ask(self, label: str, api: ApiKey, version: int, fields: Fields) -> Fields:
        answer = self._main.call(api, version, fields)
        self._say(label, answer)
        return answer

    def _prepare(self) -> None:
        """Topics, records, and groups whose state is kept."""
        topics = [
            {
                "name": name,
                "numPartitions": partitions,
                "replicationFactor": 1,
                "assignments": [],
                # The records are old, and would go in the middle of it.
                "configs": [{"name": "retention.ms", "value": "-1"}],
            }
            for name, partitions in TOPICS.items()
        ]
        fields: Fields = {"topics": topics, "timeoutMs": 10_000, "validateOnly": False}
        self._until(
            lambda: all(
                each["errorCode"] in {0, 36}
                for each in self._main.call(ApiKey.CREATE_TOPICS, 5, fields)["topics"]
            )
        )
        asked = [{"name": name, "topicId": ZERO_UUID} for name in TOPICS]
        told = self._main.call(ApiKey.METADATA, 12, {"topics": asked})["topics"]
        self._ids = {each["name"]: each["topicId"] for each in told}
        for name, partitions in TOPICS.items():
            for partition in range(partitions):
                self._produce(name, partition, 3)
                self._produce(name, partition, 2)
        self._start(GROUP, *TOPICS)

    def _until(self, condition: Callable[[], bool]) -> None:
        for _ in range(_PATIENCE):
            if condition():
                return
            self._main.wait(PAUSE_MS)
        raise DataError("the broker does not get ready")

    def _produce(self, topic: str, partition: int, count: int) -> None:
        values = (b"%d" % number for number in range(count))
        self._append_bytes(topic, partition, batch(*values, magic=2))

    def _append_bytes(self, topic: str, partition: int, records: bytes) -> None:
        """Append one batch as it is, as soon as the partition has a leader."""
        data = [{"index": partition, "records": records}]
        fields = {
            "acks": -1,
            "timeoutMs": 5_000,
            "topicData": [{"name": topic, "partitionData": data}],
        }

        def is_written() -> bool:
            answer = self._main.call(ApiKey.PRODUCE, _PRODUCE_VERSION, fields)
            error: int = answer["responses"][0]["partitionResponses"][0]["errorCode"]
            return error not in _RETRIED

        self._until(is_written)

    def _start(self, group: str, *topics: str, offset: int = 0) -> None:
        """Let the state of partitions begin, as if a group had been reset to an offset."""
        self._start_at(group, {name: range(TOPICS[name]) for name in topics}, offset)

    def _start_at(self, group: str, topics: dict[str, range], offset: int = 0) -> None:
        """The same for some partitions of topics."""
        fields = {
            "groupId": group,
            "topics": [
                {
                    "topicName": name,
                    "partitions": [
                        {"partitionIndex": each, "startOffset": offset} for each in partitions
                    ],
                }
                for name, partitions in topics.items()
            ],
        }
        find = {"keyType": 0, "coordinatorKeys": [group]}
        self._main.call(ApiKey.FIND_COORDINATOR, 4, find)
        self._until(
            lambda: (
                self._main.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, fields)["errorCode"]
                not in _RETRIED
            )
        )

    def _fetch(self, member: str = "m", epoch: int = 0, **settings: Any) -> Fields:  # noqa: ANN401
        """A ShareFetch, with what is given otherwise than usual."""
        wanted: dict[str, Any] = settings.pop("wanted", {"orders": (0,)})
        fields: Fields = {
            "groupId": settings.pop("group", GROUP),
            "memberId": member,
            "shareSessionEpoch": epoch,
            "maxWaitMs": settings.pop("wait_ms", 1_000),
            "minBytes": settings.pop("min_bytes", 1),
            "maxBytes": settings.pop("max_bytes", BIG),
            "maxRecords": settings.pop("max_records", 500),
            "batchSize": settings.pop("batch_size", 500),
            "topics": [
                {
                    "topicId": self._ids.get(name, _NOBODYS),
                    "partitions": [
                        {
                            "partitionIndex": each,
                            "acknowledgementBatches": settings.get("acks", {}).get(each, []),
                        }
                        for each in partitions
                    ],
                }
                for name, partitions in wanted.items()
            ],
            "forgottenTopicsData": [
                {"topicId": self._ids.get(name, _NOBODYS), "partitions": list(partitions)}
                for name, partitions in settings.pop("forgotten", {}).items()
            ],
        }
        settings.pop("acks", None)
        if self._version >= RENEWS_SINCE:
            fields["shareAcquireMode"] = settings.pop("mode", 0)
            fields["isRenewAck"] = settings.pop("renews", False)
        return fields

    def _share(
        self,
        label: str,
        member: str = "m",
        epoch: int = 0,
        connection: Connection | None = None,
        **settings: Any,  # noqa: ANN401 - any field
    ) -> None:
        """Fetch and tell the answer."""
        fields = self._fetch(member, epoch, **settings)
        link = self._main if connection is None else connection
        self._say(label, link.call(ApiKey.SHARE_FETCH, self._version, fields))

    def _acknowledge(
        self,
        label: str,
        acks: dict[int, list[Fields]],
        member: str = "m",
        epoch: int = 1,
        **settings: Any,  # noqa: ANN401 - any field
    ) -> None:
        """Acknowledge and tell the answer."""
        fields: Fields = {
            "groupId": settings.get("group", GROUP),
            "memberId": member,
            "shareSessionEpoch": epoch,
            "topics": [
                {
                    "topicId": self._ids.get(settings.get("topic", "orders"), _NOBODYS),
                    "partitions": [
                        {"partitionIndex": each, "acknowledgementBatches": batches}
                        for each, batches in acks.items()
                    ],
                }
            ]
            if acks
            else [],
        }
        if self._version >= RENEWS_SINCE:
            fields["isRenewAck"] = settings.get("renews", False)
        self._ask(label, ApiKey.SHARE_ACKNOWLEDGE, self._version, fields)

    def _end(self, member: str, group: str = GROUP) -> None:
        """End a session without a word, and let what was released be written."""
        fields = self._fetch(member, -1, wanted={}, group=group)
        self._main.call(ApiKey.SHARE_FETCH, self._version, fields)
        self._main.wait(_WRITTEN_MS)


def _plain(name: str, value: Any, ids: dict[str, bytes]) -> Any:  # noqa: ANN401 - any field
    """Leave out what a broker chooses, and defaults; tables have no order."""
    if isinstance(value, dict):
        told = {key: _plain(key, each, ids) for key, each in value.items()}
        return {key: each for key, each in told.items() if each not in (None, [], {}, "", 0)}
    if isinstance(value, list):
        found = [_plain(name, each, ids) for each in value]
        return sorted(found, key=str) if name in {"responses", "topics", "partitions"} else found
    if name == "records":
        return list(_ranges(value))
    if isinstance(value, bytes):
        return next((f"id of {topic}" for topic, each in ids.items() if each == value), "an id")
    return value


def _ranges(data: bytes | None) -> Iterator[str]:
    """The offsets of batches; a truncated one at the end is left out."""
    position = 0
    while data and (found := next_batch(data, position)) is not None:
        position += found.size
        yield f"{found.base_offset}-{found.last_offset}"
