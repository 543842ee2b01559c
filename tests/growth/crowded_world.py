"""A cluster in which as many of everything exist as a request of these tests may name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.properties import configured
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.messages.embedded.consumer_protocol import encode_subscription
from coordinator_sim.messages.embedded.contents import Subscription
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame

START_MS: Final = 1_700_000_000_000
CROWD: Final = "crowd"
"""A group with many members."""
DENIED: Final = "denied-"
"""How the names begin of everything that nobody may touch."""
WIDE: Final = "wide"
"""A topic with many partitions."""
_RIGHTS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_DENIED_KINDS: Final = (2, 3, 5)
"""Topics, groups and transactional ids. Source: ResourceType.java."""
_PREFIXED: Final = 4
_DENY: Final = 2
_LONG_MS: Final = 1_800_000
_MOST_JUMPS: Final = 100
BATCH: Final = encode_record_batch(
    batch_of((Record(offset=0, timestamp_ms=START_MS, key=b"k", value=b"v"),))
)
SUBSCRIPTION: Final = encode_subscription(Subscription(topics=(WIDE,)), 1)


class Line:
    """A client's connection.

    Attributes:
        frames: Answers, without their lengths.
        closed: Why the broker ended it; None while it is open.
    """

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.frames: list[bytes] = []
        self.closed: str | None = None
        self.connection = Connection(
            cluster, 1, number=number, listener="PLAINTEXT", client_host="/127.0.0.1", output=self
        )

    def write(self, data: bytes) -> None:
        """Take an answer."""
        self.frames.append(data[4:])

    def close(self, reason: str) -> None:
        """Hear of the end."""
        self.closed = reason


class CrowdedWorld:
    """One broker with `size` of everything.

    Attributes:
        size: Topics, partitions of the widest, groups, members of the largest, transactional
            ids, ACLs, users and quotas.
        members: Of the large group, its leader first.
        producers: Id and epoch of each transactional id.
        session_id: A fetch session with all partitions of the widest topic; 0 in a Kafka without.

    Args:
        profile: The Kafka to be.
        size: See above.
        given: Properties of the brokers beside those of this module.
    """

    def __init__(
        self, profile: Profile, size: int, given: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.size = size
        self.now_ms = START_MS
        settings = ClusterSettings(
            profile=profile,
            coordinator=configured(CoordinatorConfig(offsets_topic_num_partitions=4), given),
            transaction_partitions=4,
            given={**_RIGHTS, **given},
        )
        self.cluster = Cluster(
            settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092)
        )
        self._line_count = 0
        internal = ["__consumer_offsets", "__transaction_state"]
        if profile.share_groups:
            internal.append("__share_group_state")
        for name in internal:
            self.cluster.topics.create_asked_for(name, self._now())
        self._create_topics()
        self._create_groups()
        self.members = self._join_crowd()
        self._create_rules()
        self.producers = self._begin_transactions()
        self.session_id = self._begin_fetch_session()

    # -- verbs -----------------------------------------------------------------------------

    def _now(self) -> Instants:
        return Instants(self.now_ms, self.now_ms)

    def line(self) -> Line:
        """A new connection."""
        self._line_count += 1
        return Line(self.cluster, self._line_count)

    def send(self, line: Line, frame: bytes) -> None:
        """Hand a request over; the answer may come later."""
        line.connection.received(frame, self._now())

    def jump(self, until_ms: int | None = None) -> bool:
        """Work on a long request, or let time pass up to the next deadline; false for neither."""
        cluster = self.cluster
        if cluster.has_work:
            cluster.work(self._now())
            return True
        found = (cluster.next_group_deadline_ms(), cluster.next_wall_deadline_ms())
        due_ms = min((each for each in found if each is not None), default=None)
        if due_ms is None or (until_ms is not None and due_ms > until_ms):
            return False
        self.now_ms = max(self.now_ms + 1, due_ms)
        cluster.expire(self._now())
        return True

    def settle(self, line: Line) -> bool:
        """Let time pass until the line has an answer or is closed; false when neither comes."""
        for _ in range(_MOST_JUMPS):
            if line.frames or line.closed is not None:
                return True
            if not self.jump():
                return False
        return False

    def linger(self, duration_ms: int) -> None:
        """Let time pass, a bounded number of deadlines."""
        end_ms = self.now_ms + duration_ms
        for _ in range(_MOST_JUMPS):
            if not self.jump(end_ms):
                break
        self.now_ms = max(self.now_ms, end_ms)

    def newest(self, api: ApiKey) -> int | None:
        """The newest version offered; None when the API is not."""
        span = self.cluster.versions.ranges.get(api)
        return None if span is None else span[1]

    def call(self, api: ApiKey, fields: Fields, at_most: int = 99) -> Fields:
        """The answer to a request in its newest version, up to one."""
        newest = self.newest(api)
        assert newest is not None
        version = min(newest, at_most)
        line = self.line()
        self.send(line, frame_of(api, version, fields))
        assert self.settle(line), f"{api.name} was not answered"
        assert line.frames, line.closed
        return read_response_frame(api, version, line.frames[0])[1]

    # -- what there is ---------------------------------------------------------------------

    def topic(self, index: int) -> str:
        """A topic that there is."""
        return WIDE if index == 0 else f"topic-{index:04}"

    def topic_id(self, index: int) -> bytes:
        """The topic's id."""
        return self.cluster.image.topics[self.topic(index)].topic_id

    def group(self, index: int) -> str:
        """A group without members that has committed an offset."""
        return f"group-{index:04}"

    def _create_topics(self) -> None:
        topics: list[Fields] = [
            {"name": self.topic(index), "numPartitions": 1, "replicationFactor": 1}
            for index in range(self.size)
        ]
        topics[0]["numPartitions"] = self.size
        self.call(ApiKey.CREATE_TOPICS, {"topics": topics})

    def _create_groups(self) -> None:
        partition = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": ""}
        for index in range(self.size):
            topics = [{"name": WIDE, "partitions": [partition]}]
            fields = {"groupId": self.group(index), "topics": topics}
            self.call(ApiKey.OFFSET_COMMIT, fields, at_most=5)

    def _join_crowd(self) -> list[str]:
        """All members join within the initial delay, so that there is one generation of them."""
        version = min(self.newest(ApiKey.JOIN_GROUP) or 0, 3)
        fields: Fields = {
            "groupId": CROWD,
            "sessionTimeoutMs": _LONG_MS,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
        }
        if version:
            fields["rebalanceTimeoutMs"] = _LONG_MS
        lines = [self.line() for _ in range(self.size)]
        for line in lines:
            self.send(line, frame_of(ApiKey.JOIN_GROUP, version, fields))
        self.settle(lines[-1])
        answers = [
            read_response_frame(ApiKey.JOIN_GROUP, version, each.frames[0])[1] for each in lines
        ]
        leader = answers[0]["leader"]
        members = [each["memberId"] for each in answers]
        return sorted(members, key=lambda each: each != leader)

    def _create_rules(self) -> None:
        """ACLs, users, quotas and settings of topics."""
        names = [f"{index:04}" for index in range(self.size)]
        creations = [acl_of(self.topic(index)) for index in range(self.size)]
        creations += [
            acl_of(DENIED, kind) | {"resourcePatternType": _PREFIXED, "permissionType": _DENY}
            for kind in _DENIED_KINDS
        ]
        for index in range(self.size):
            creations += [
                acl_of(WIDE) | {"principal": f"User:{index:04}"},
                acl_of(f"prefix-{index:04}") | {"resourcePatternType": _PREFIXED},
            ]
        if self.newest(ApiKey.CREATE_ACLS):
            self.call(ApiKey.CREATE_ACLS, {"creations": creations})
        upsertions = [scram_of(f"user-{name}") for name in names]
        entries = [
            {
                "entity": [{"entityType": "user", "entityName": f"user-{name}"}],
                "ops": [{"key": "producer_byte_rate", "value": 1e6}],
            }
            for name in names
        ]
        if self.newest(ApiKey.ALTER_USER_SCRAM_CREDENTIALS) is not None:
            self.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"upsertions": upsertions})
        if self.newest(ApiKey.ALTER_CLIENT_QUOTAS) is not None:
            self.call(ApiKey.ALTER_CLIENT_QUOTAS, {"entries": entries})

    def _begin_transactions(self) -> list[tuple[int, int]]:
        """Transactional ids; those of even numbers have a transaction open."""
        if self.newest(ApiKey.INIT_PRODUCER_ID) is None:
            return [(index, 0) for index in range(self.size)]
        found = []
        for index in range(self.size):
            fields = {"transactionalId": f"txn-{index:04}", "transactionTimeoutMs": 600_000}
            answer = self.call(ApiKey.INIT_PRODUCER_ID, fields, at_most=1)
            found.append((answer["producerId"], answer["producerEpoch"]))
        for index in range(0, self.size, 2):
            producer_id, epoch = found[index]
            offsets = {
                "transactionalId": f"txn-{index:04}",
                "producerId": producer_id,
                "producerEpoch": epoch,
                "groupId": self.group(index),
            }
            self.call(ApiKey.ADD_OFFSETS_TO_TXN, offsets, at_most=1)
        return found

    def _begin_fetch_session(self) -> int:
        if (self.newest(ApiKey.FETCH) or 0) < 7:
            return 0
        partitions = [{"partition": each, "partitionMaxBytes": 1} for each in range(self.size)]
        topic = {"topic": WIDE, "topicId": self.topic_id(0), "partitions": partitions}
        fields = {"maxWaitMs": 0, "sessionEpoch": 0, "topics": [topic]}
        return int(self.call(ApiKey.FETCH, fields)["sessionId"])


def frame_of(api: ApiKey, version: int, fields: Fields) -> bytes:
    """A request as bytes."""
    header = RequestHeader(api_key=api, api_version=version, correlation_id=0, client_id="test")
    return request_frame(header, fields)


def acl_of(name: str, resource_type: int = 2) -> Fields:
    """A right of everybody to do everything with one topic, or with something else."""
    return {
        "resourceType": resource_type,
        "resourceName": name,
        "principal": "User:*",
        "host": "*",
        "operation": 2,
        "permissionType": 3,
    }


def scram_of(name: str) -> dict[str, Any]:
    """The credentials of a user."""
    return {
        "name": name,
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"salt",
        "saltedPassword": bytes(32),
    }
