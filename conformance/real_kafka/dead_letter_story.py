"""The story of dead-letter queues in raw requests: which records go there, and what they say.

Settings of groups, topics that may not be used, copies, topics that are created, and limits. What
is in a queue is told record by record, without timestamps, by group and offset: a real broker
merges batches, and writes later what it has to try again.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.data_questions import TIME_MS
from coordinator_sim_conformance.real_kafka.share_answers import (
    PAUSE_MS,
    SETTINGS,
    Connection,
    ShareAsking,
)
from coordinator_sim_conformance.real_kafka.share_story import acked

QUEUE_SETTINGS: Final = {**SETTINGS, "message.max.bytes": "2000", "num.partitions": "2"}
"""Of the brokers."""
_SOURCES: Final = {"orders": 2, "packed": 1, "large": 1}
_QUEUES: Final = ("dlq.app", "dlq.copies", "dlq.narrow", "letters")
_TOPIC, _BROKER, _GROUP = 2, 4, 32
_RELEASE, _REJECT = 2, 3
_NAME: Final = "errors.deadletterqueue.topic.name"
_COPIES: Final = "errors.deadletterqueue.copy.record.enable"
_CREATES: Final = "errors.deadletterqueue.auto.create.topics.enable"
_IS_QUEUE: Final = "errors.deadletterqueue.group.enable"
_LIMIT: Final = "share.delivery.count.limit"
_LOCK: Final = "share.record.lock.duration.ms"
_SAFE_DOWNGRADE: Final = 2
_WITHOUT_VALUE: Final = 2
_VERSION: Final = 2


class DeadLetterStory(ShareAsking):
    """The story at one broker of 4.4 or later.

    Args:
        connect: Opens another connection.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect, _VERSION)

    def play(self) -> list[str]:
        """Play it; each line has a label and an answer."""
        self._prepare()
        for part in (
            self._settings,
            self._unusable_topics,
            self._rejected,
            self._delivered_too_often,
            self._timed_out,
            self._copied,
            self._too_large,
            self._created,
            self._switched_off,
        ):
            part()
        self._main.close()
        return self._lines

    # -- what there is ---------------------------------------------------------------------

    def _prepare(self) -> None:
        """Topics with keys, values and headers; queues, and a topic that is none."""
        for name, partitions in _SOURCES.items():
            self._create_topic(name, partitions, {"retention.ms": "-1"})
        for name in _QUEUES:
            self._create_topic(name, 1 if name != "dlq.copies" else 2, {_IS_QUEUE: "true"})
        self._set(_TOPIC, "dlq.narrow", {"max.message.bytes": "500"})
        self._create_topic("dlq.plain", 1, {})
        asked = [{"name": name, "topicId": ZERO_UUID} for name in _SOURCES]
        told = self._main.call(ApiKey.METADATA, 12, {"topics": asked})["topics"]
        self._ids = {each["name"]: each["topicId"] for each in told}
        for partition in range(2):
            self._append("orders", partition, range(3))
            self._append("orders", partition, range(3, 6))
        self._append("packed", 0, range(4), Compression.GZIP)
        self._append("large", 0, range(2))
        self._append("large", 0, range(4), size=100)
        self._append("large", 0, range(2), size=400)
        self._append("large", 0, range(1), size=600)

    def _create_topic(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        topic = {
            "name": name,
            "numPartitions": partitions,
            "replicationFactor": 1,
            "assignments": [],
            "configs": [{"name": each, "value": value} for each, value in configs.items()],
        }
        fields: Fields = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
        self._until(
            lambda: (
                self._main.call(ApiKey.CREATE_TOPICS, 5, fields)["topics"][0]["errorCode"]
                == ErrorCode.TOPIC_ALREADY_EXISTS
            )
        )

    def _append(
        self,
        topic: str,
        partition: int,
        numbers: Iterable[int],
        compression: Compression = Compression.NONE,
        size: int = 1,
    ) -> None:
        """Append a batch: odd numbers have a key, all but 2 a value."""
        records = tuple(
            Record(
                offset=index,
                timestamp_ms=TIME_MS + index,
                key=b"key %d" % number if number % 2 else None,
                value=None if number == _WITHOUT_VALUE else (b"%d" % number) * size,
                headers=(("own", b"header"),),
            )
            for index, number in enumerate(numbers)
        )
        data = encode_record_batch(batch_of(records, compression=compression))
        self._append_bytes(topic, partition, data)

    def _set(self, kind: int, name: str, values: dict[str, str]) -> Fields:
        configs = [
            {"name": each, "configOperation": 0, "value": value} for each, value in values.items()
        ]
        resource = {"resourceType": kind, "resourceName": name, "configs": configs}
        fields = {"resources": [resource], "validateOnly": False}
        answer = self._main.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, fields)
        self._main.wait(PAUSE_MS)
        return answer

    # -- the parts -------------------------------------------------------------------------

    def _settings(self) -> None:
        """Names and values that a group may have, and how they are told."""
        for name in ("__letters", "not a topic's name", " ", "dlq.app"):
            self._say(f"named {name!r}", self._set(_GROUP, "settings", {_NAME: name}))
        for text in ("perhaps", "true"):
            self._say(f"copies {text}", self._set(_GROUP, "settings", {_COPIES: text}))
        self._describe("the group", _GROUP, "settings", _NAME, _COPIES)
        self._describe("another group", _GROUP, "other", _NAME, _COPIES)
        self._describe("a queue", _TOPIC, "dlq.app", _IS_QUEUE)
        self._describe("no queue", _TOPIC, "dlq.plain", _IS_QUEUE)
        prefix = "errors.deadletterqueue.topic.name.prefix"
        self._describe("the broker", _BROKER, "1", _CREATES, prefix)

    def _describe(self, label: str, kind: int, name: str, *keys: str) -> None:
        resource = {"resourceType": kind, "resourceName": name, "configurationKeys": list(keys)}
        fields = {
            "resources": [resource],
            "includeSynonyms": True,
            "includeDocumentation": False,
        }
        answer = self._main.call(ApiKey.DESCRIBE_CONFIGS, 4, fields)
        (found,) = answer["results"]
        configs = sorted(found["configs"], key=lambda each: str(each["name"]))
        self._say(f"described: {label}", {"configs": configs, "errorCode": found["errorCode"]})

    def _unusable_topics(self) -> None:
        """Records are archived all the same, and nothing is written."""
        for group, name in (
            ("without", "dlq.absent"),
            ("unmarked", "dlq.plain"),
            ("unprefixed", "letters"),
        ):
            self._begin(group, name)
            self._give_up(group, acked(0, 2, _REJECT))
            self._left(group)
        self._say("created by nobody", {"names": self._names()})
        self._letters("dlq.plain", 0, 0)
        self._letters("letters", 0, 0)

    def _rejected(self) -> None:
        """Whole batches, and records one by one."""
        self._begin("app", "dlq.app")
        self._give_up("app", acked(0, 2, _REJECT), acked(3, 5, _REJECT, _RELEASE, _REJECT))
        self._letters("dlq.app", 0, 5)
        self._left("app")

    def _delivered_too_often(self) -> None:
        """At the limit a release is the end, by acknowledgement or by the end of a session."""
        self._begin("often", "dlq.app", {_LIMIT: "2"})
        self._give_up("often", acked(0, 5, _RELEASE))
        self._give_up("often", acked(0, 2, _RELEASE))
        self._letters("dlq.app", 0, 11)
        self._left("often")

    def _timed_out(self) -> None:
        """A lock that runs out for the last time."""
        self._begin("late", "dlq.app", {_LIMIT: "2", _LOCK: "1000"})
        for _ in range(2):
            self._share("for a second", group="late", wanted={"orders": (0,)}, wait_ms=5_000)
            self._main.wait(1_000 + 2 * PAUSE_MS)
            self._end("m", "late")
        self._letters("dlq.app", 0, 17)
        self._left("late")

    def _copied(self) -> None:
        """Keys and values go with it, to the partition of the same number modulo their count."""
        self._begin("copies", "dlq.copies", {_COPIES: "true"})
        for partition in range(2):
            self._give_up("copies", acked(0, 5, _REJECT), partition=partition)
        self._letters("dlq.copies", 0, 6)
        self._letters("dlq.copies", 1, 6)
        self._begin("packed", "dlq.copies", {_COPIES: "true"}, topic="packed")
        self._give_up("packed", acked(0, 3, _REJECT), topic="packed")
        self._letters("dlq.copies", 0, 10)

    def _too_large(self) -> None:
        """Originals that exceed the queue's limit are not copied; letters that do are lost."""
        self._begin("narrow", "dlq.narrow", {_COPIES: "true"}, topic="large")
        self._give_up(
            "narrow",
            acked(0, 1, _REJECT),
            acked(2, 5, _REJECT),
            acked(6, 7, _REJECT),
            acked(8, 8, _REJECT),
            topic="large",
        )
        self._left("narrow", "large")
        self._letters("dlq.narrow", 0, 7)
        # A whole batch goes in rounds, up to the record that is too large.
        self._begin("rounds", "dlq.narrow", {_COPIES: "true"}, topic="large")
        self._give_up("rounds", acked(0, 8, _REJECT), topic="large")
        self._letters("dlq.narrow", 0, 13)
        self._left("rounds", "large")

    def _created(self) -> None:
        """A topic that is missing is created where the brokers may."""
        self._set(_BROKER, "", {_CREATES: "true"})
        self._begin("makes", "dlq.made")
        self._give_up("makes", acked(0, 2, _REJECT))
        self._until(lambda: "dlq.made" in self._names())
        self._letters("dlq.made", 0, 3)
        self._letters("dlq.made", 1, 0)
        self._describe("created", _TOPIC, "dlq.made", _IS_QUEUE, "message.timestamp.type")
        self._begin("misnamed", "dlq.not a name")
        self._give_up("misnamed", acked(0, 2, _REJECT))
        self._left("misnamed")

    def _switched_off(self) -> None:
        """At level 1 of `share.version` records are archived at once."""
        update = {
            "feature": "share.version",
            "maxVersionLevel": 1,
            "upgradeType": _SAFE_DOWNGRADE,
        }
        fields = {"timeoutMs": 5_000, "featureUpdates": [update], "validateOnly": False}
        self._ask("share.version 1", ApiKey.UPDATE_FEATURES, 1, fields)
        self._main.wait(2 * PAUSE_MS)
        self._begin("off", "dlq.app")
        self._give_up("off", acked(0, 2, _REJECT))
        self._left("off")
        self._letters("dlq.app", 0, 17)

    # -- what is asked ---------------------------------------------------------------------

    def _begin(
        self, group: str, queue: str, values: dict[str, str] | None = None, topic: str = "orders"
    ) -> None:
        """Name the queue of a group, and let it begin to read."""
        self._set(_GROUP, group, {_NAME: queue, **(values or {})})
        self._start_at(group, {topic: range(_SOURCES[topic])})

    def _give_up(
        self, group: str, *acks: Fields, topic: str = "orders", partition: int = 0
    ) -> None:
        """Fetch all records of a partition, and acknowledge some, the rest with the session."""
        wanted = {topic: (partition,)}
        self._share(f"{group} reads", group=group, wanted=wanted, wait_ms=5_000)
        told: dict[int, Any] = {partition: list(acks)}
        self._acknowledge(f"{group} acknowledges", told, group=group, topic=topic)
        self._end("m", group)

    def _left(self, group: str, topic: str = "orders") -> None:
        """What a group still reads: neither what is archived nor what is on its way."""
        self._main.wait(PAUSE_MS)
        self._share(f"{group} reads on", group=group, wanted={topic: (0,)}, wait_ms=200)
        self._end("m", group)

    def _names(self) -> list[str]:
        told = self._main.call(ApiKey.METADATA, 12, {"topics": None})["topics"]
        return sorted(each["name"] for each in told if not each["name"].startswith("__"))

    def _letters(self, topic: str, partition: int, count: int) -> None:
        """Wait until a queue has so many records, and tell them."""
        self._until(lambda: len(self._read(topic, partition)) >= count)
        self._main.wait(PAUSE_MS)
        found = sorted(self._read(topic, partition), key=_origin)
        self._lines.append(json.dumps([f"{topic}-{partition}", found], separators=(",", ":")))

    def _read(self, topic: str, partition: int) -> list[Fields]:
        wanted = {"partition": partition, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
        fields = {
            "replicaId": -1,
            "maxWaitMs": 0,
            "minBytes": 0,
            "maxBytes": 1 << 20,
            "topics": [{"topic": topic, "partitions": [wanted]}],
        }
        answer = self._main.call(ApiKey.FETCH, 12, fields)
        (found,) = answer["responses"][0]["partitions"]
        return list(_told(found["records"] or b""))


def _told(data: bytes) -> Iterable[Fields]:
    position = 0
    while (batch := next_batch(data, position)) is not None:
        position += batch.size
        for record in batch.records():
            yield {
                "key": None if record.key is None else record.key.decode(),
                "value": None if record.value is None else record.value.decode(),
                "headers": [[name, (value or b"").decode()] for name, value in record.headers],
                "batch": [batch.codec, batch.producer_id, int(batch.timestamp_type)],
            }


def _origin(letter: Fields) -> tuple[str, int, int]:
    """Group, partition and offset of the original record."""
    values = dict(letter["headers"])
    partition, offset = (int(values[f"__dlq.errors.{name}"]) for name in ("partition", "offset"))
    return values["__dlq.errors.group"], partition, offset
