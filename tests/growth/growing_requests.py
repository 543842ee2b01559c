"""Requests of every API and version with as many items as wished in each of their arrays.

They are made from the schemas of the protocol, so that an array that is new there is tried without
further ado. What stands in a field follows from its name; `_NOUNS` and `_SCALARS` say how.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum, unique
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.catalogue import layout_of
from coordinator_sim.messages.codec.compact_types import unsigned_varint_bytes
from coordinator_sim.messages.embedded import consumer_protocol
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.schema import ZERO_UUID, Field, Kind, Layout, VersionField
from coordinator_sim_conformance.field_frames import Fields
from tests.growth.crowded_world import BATCH, CROWD, DENIED, SUBSCRIPTION, CrowdedWorld, frame_of

Path = tuple[str, ...]

_STATIC_SINCE: Final = 5
"""JoinGroup names a group instance id from this version on."""


@unique
class Pattern(StrEnum):
    """How the items of an array differ."""

    DISTINCT = "distinct"
    REPEATED = "repeated"
    SPREAD = "spread"
    """One name again and again, with another inner entry each time."""


@unique
class Names(StrEnum):
    """Whether what the items name is there."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    """Nothing that the grown array names."""
    NOWHERE = "nowhere"
    """Nothing at all."""
    DENIED = "denied"
    """Nothing that the sender may touch."""


class Question(Struct, frozen=True, kw_only=True):
    """A family of requests that differ in the length of one array.

    Args:
        path: Names of the fields that lead to the array.
        dress: Fields beside the array that take another way through the broker.
    """

    api: ApiKey
    version: int
    path: Path
    pattern: Pattern
    names: Names
    dress: int = 0

    def __str__(self) -> str:
        """The question as a failure names it."""
        dress = f", dress {self.dress}" if self.dress else ""
        return (
            f"{self.api.name} {self.version}: {'.'.join(self.path)} with {self.pattern} entries, "
            f"{self.names} names{dress}"
        )


_BY_NAME: Final[Fields] = {"topicId": ZERO_UUID}
_DRESSES: Final[dict[ApiKey, tuple[Fields, ...]]] = {
    ApiKey.FETCH: ({}, {"sessionEpoch": 0, "maxWaitMs": 0}),
    ApiKey.METADATA: ({}, _BY_NAME, _BY_NAME | {"allowAutoTopicCreation": True}),
    ApiKey.DELETE_TOPICS: ({"name": None}, _BY_NAME),
    ApiKey.DELETE_ACLS: ({}, {"resourceNameFilter": None}),
    ApiKey.CREATE_TOPICS: ({}, {"assigned": True}, {"validateOnly": True}),
}
"""Other values of some fields, tried as well; `assigned` fills `assignments`."""

_SCALARS: Final[Fields] = {
    "acks": -1,
    "timeoutMs": 1_000,
    "maxWaitMs": 500,
    "minBytes": 1,
    "partitionMaxBytes": 1_000,
    "timestamp": -1,
    "replicaId": -1,
    "allowAutoTopicCreation": False,
    "includeTopicAuthorizedOperations": True,
    "committedOffset": 7,
    "committedMetadata": "",
    "resourceType": 2,
    "resourceTypeFilter": 2,
    "operation": 3,
    "permissionType": 3,
    "host": "*",
    "hostFilter": None,
    "principalFilter": None,
    "sessionTimeoutMs": 300_000,
    "rebalanceTimeoutMs": 300_000,
    "protocolType": "consumer",
    "metadata": SUBSCRIPTION,
    "assignment": b"assigned",
    "transactionTimeoutMs": 60_000,
    "entityType": "user",
    "matchType": 0,
    "mechanism": 1,
    "iterations": 4096,
    "salt": b"salt",
    "saltedPassword": bytes(32),
    "records": BATCH,
    "maxVersionLevel": 1,
    "committed": True,
    "transactionResult": True,
    "electionType": 0,
    "offset": 0,
    "leaderEpoch": 0,
    "clientSoftwareName": "test",
    "clientSoftwareVersion": "1",
    "value": 1.0,
}
"""What stands in fields that name nothing."""

_CONFIG_NAMES: Final = [
    "retention.ms",
    "segment.bytes",
    "max.message.bytes",
    "flush.ms",
    "segment.ms",
]
_TOPIC_NAMES: Final = frozenset(
    ["topics", "topicData", "topicPartitions", "forgottenTopicsData", "v3AndBelowTopics"]
)
"""Arrays whose `name` is a topic's."""


class _Draft:
    """One request in the making.

    Args:
        world: What there is.
        items: Length of the grown array.
    """

    def __init__(self, world: CrowdedWorld, question: Question, items: int) -> None:
        self.world = world
        self.question = question
        self.items = items
        self.dress = _DRESSES.get(question.api, ({},))[question.dress]

    def fields(self) -> Fields:
        """The request."""
        question = self.question
        layout = layout_of(question.api, question.version, response=False)
        return self._struct(layout, (), ())

    # -- structure -------------------------------------------------------------------------

    def _struct(self, layout: Layout, path: Path, turns: tuple[int, ...]) -> Fields:
        """A struct; `turns` are the places in the arrays around it."""
        return {
            each.field.name: self._value(each, (*path, each.field.name), turns)
            for each in layout.present
        }

    def _value(self, said: VersionField, path: Path, turns: tuple[int, ...]) -> Any:  # noqa: ANN401
        kind, layout = said.field.kind, said.layout
        if said.field.name in self.dress and kind is not Kind.ARRAY:
            return self.dress[said.field.name]
        if kind is Kind.STRUCT:
            if said.field.default is None or layout is None:
                return None
            return self._struct(layout, path, turns)
        if kind is not Kind.ARRAY:
            return self._scalar(said.field, path, turns)
        count = self._length(path)
        if count is None:
            return None if said.is_nullable else []
        if layout is not None:
            return [self._struct(layout, path, (*turns, each)) for each in range(count)]
        return [self._scalar(said.field, path, (*turns, each)) for each in range(count)]

    def _length(self, path: Path) -> int | None:
        """How many items; None for an array that would contradict the grown one."""
        grown = self.question.path
        if path == grown:
            return self.items
        if grown[: len(path)] == path:
            return 1
        if path[-1] == "assignments":
            return 1 if "assigned" in self.dress else None
        apart = self.question.api in (ApiKey.FETCH, ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
        return None if apart and path[0] != grown[0] else 1

    # -- values ----------------------------------------------------------------------------

    def _turn(self, path: Path, turns: tuple[int, ...], depth: int) -> int:
        """The number of the item that a field is to name, at a depth of arrays."""
        question = self.question
        grown = len(question.path)
        if question.pattern is Pattern.REPEATED and depth == grown:
            return 0
        if question.pattern is Pattern.SPREAD:
            if depth == grown:
                return 0
            if depth == grown + 1 and path[:grown] == question.path:
                return turns[grown - 1]
        return turns[depth - 1] if 0 < depth <= len(turns) else 0

    def _is_known(self, depth: int) -> bool:
        """Whether what a field at a depth of arrays names is there."""
        question = self.question
        if question.names in (Names.UNKNOWN, Names.DENIED):
            grown = len(question.path)
            return depth != (grown + 1 if question.pattern is Pattern.SPREAD else grown)
        return question.names is Names.KNOWN

    @property
    def lacking(self) -> str:
        """How names of things begin that are not there."""
        return DENIED if self.question.names is Names.DENIED else "none-"

    def _scalar(self, field: Field, path: Path, turns: tuple[int, ...]) -> Any:  # noqa: ANN401
        grow = _EMBEDDED.get((self.question.api, path))
        if grow is not None and path == self.question.path:
            repeated = self.question.pattern is Pattern.REPEATED
            indexes = [0 if repeated else each for each in range(self.items)]
            return grow([_topic(self, each, self._is_known(len(path))) for each in indexes])
        depth = len(turns)
        turn, known = self._turn(path, turns, depth), self._is_known(depth)
        noun = _noun_of(self.question.api, field, path)
        if noun is not None:
            return noun(self, turn, known)
        special = _SPECIAL.get((self.question.api, field.name))
        if special is not None:
            return special
        if field.name in _SCALARS:
            return _SCALARS[field.name]
        if field.kind is Kind.ARRAY:
            return turn % 100 if field.element is Kind.INT8 else turn
        return field.default


Noun = Callable[[_Draft, int, bool], Any]
"""Names the thing of a number: one that is there, or one that is not."""


def _topic(draft: _Draft, turn: int, known: bool) -> str:
    return draft.world.topic(turn) if known else f"{draft.lacking}{turn:04}"


def _new_topic(draft: _Draft, turn: int, known: bool) -> str:
    """What CreateTopics asks for: known names are good ones here."""
    if draft.question.names is Names.DENIED:
        return f"{DENIED}{turn:04}"
    return f"fresh_{turn:04}" if known else f"bad!{turn:04}"


def _topic_id(draft: _Draft, turn: int, known: bool) -> bytes:
    if known:
        return draft.world.topic_id(turn)
    return b"none" + turn.to_bytes(12, "big")


def _partition(_draft: _Draft, turn: int, known: bool) -> int:
    return turn if known else 1_000 + turn


def _own_count(draft: _Draft, _turn: int, _known: bool) -> int:
    """Partitions or replicas of a topic to be; -1 where the assignments say it."""
    return -1 if "assigned" in draft.dress or "assignments" in draft.question.path else 1


def _wider(draft: _Draft, turn: int, _known: bool) -> int:
    """How many partitions a topic is to have: as many more as it is given assignments."""
    more = draft.items if draft.question.path[-1] == "assignments" else 1
    return more + (1 if turn else draft.world.size)


def _resource_type(_draft: _Draft, turn: int, known: bool) -> int:
    return (2, 4, 8, 16, 32)[turn % 5] if known else 40 + turn % 80


def _static(draft: _Draft, _turn: int, _known: bool) -> str | None:
    return "static" if draft.question.version >= _STATIC_SINCE else None


def _new_partition(_draft: _Draft, turn: int, _known: bool) -> int:
    return turn


def _group(draft: _Draft, turn: int, known: bool) -> str:
    return draft.world.group(turn) if known else f"{draft.lacking}{turn:04}"


def _crowd(_draft: _Draft, _turn: int, known: bool) -> str:
    return CROWD if known else "none"


def _joined(_draft: _Draft, _turn: int, _known: bool) -> str:
    return "joined"


def _member(draft: _Draft, turn: int, known: bool) -> str:
    return draft.world.members[turn] if known else f"none-{turn:04}"


def _leader(draft: _Draft, _turn: int, _known: bool) -> str:
    return draft.world.members[0]


def _nobody(_draft: _Draft, _turn: int, _known: bool) -> str:
    return ""


def _null(_draft: _Draft, _turn: int, _known: bool) -> None:
    return None


def _transactional_id(draft: _Draft, turn: int, known: bool) -> str:
    return f"txn-{turn:04}" if known else f"{draft.lacking}{turn:04}"


def _producer_id(draft: _Draft, turn: int, known: bool) -> int:
    return draft.world.producers[turn][0] if known else 100_000 + turn


def _producer_epoch(draft: _Draft, turn: int, _known: bool) -> int:
    return draft.world.producers[turn][1]


def _broker(_draft: _Draft, turn: int, known: bool) -> int:
    return 1 if known and turn == 0 else 100 + turn


def _config(_draft: _Draft, turn: int, known: bool) -> str:
    if known:
        return _CONFIG_NAMES[turn % len(_CONFIG_NAMES)]
    return f"none.{turn:04}"


def _setting(_draft: _Draft, _turn: int, _known: bool) -> str:
    return "1048576"


def _protocol(_draft: _Draft, turn: int, known: bool) -> str:
    return "range" if known and turn == 0 else f"protocol-{turn:04}"


def _user(_draft: _Draft, turn: int, known: bool) -> str:
    return f"user-{turn:04}" if known else f"none-{turn:04}"


def _principal(_draft: _Draft, turn: int, known: bool) -> str:
    return "User:*" if known else f"User:none-{turn:04}"


def _quota(_draft: _Draft, turn: int, known: bool) -> str:
    return "producer_byte_rate" if known else f"none_{turn:04}"


def _feature(_draft: _Draft, turn: int, known: bool) -> str:
    return "transaction.version" if known and turn == 0 else f"feature-{turn:04}"


def _state(_draft: _Draft, turn: int, known: bool) -> str:
    return "Empty" if known and turn == 0 else f"state-{turn:04}"


def _session(draft: _Draft, _turn: int, _known: bool) -> int:
    return draft.world.session_id if draft.question.path[0] == "forgottenTopicsData" else 0


def _session_epoch(draft: _Draft, _turn: int, _known: bool) -> int:
    return 1 if draft.question.path[0] == "forgottenTopicsData" else -1


_NOUNS: Final[dict[str, Noun]] = {
    "topic": _topic,
    "topicName": _topic,
    "topicNames": _topic,
    "subscribedTopicNames": _topic,
    "groupIds": _group,
    "topicId": _topic_id,
    "resourceName": _topic,
    "resourceNameFilter": _topic,
    "partition": _partition,
    "partitionIndex": _partition,
    "partitionIndexes": _partition,
    "partitions": _partition,
    "index": _partition,
    "groupId": _group,
    "groups": _group,
    "groupsNames": _group,
    "key": _group,
    "coordinatorKeys": _group,
    "memberId": _nobody,
    "groupInstanceId": _null,
    "transactionalId": _transactional_id,
    "transactionalIds": _transactional_id,
    "v3AndBelowTransactionalId": _transactional_id,
    "producerId": _producer_id,
    "producerIdFilters": _producer_id,
    "v3AndBelowProducerId": _producer_id,
    "producerEpoch": _producer_epoch,
    "v3AndBelowProducerEpoch": _producer_epoch,
    "brokerIds": _broker,
    "replicas": _broker,
    "configurationKeys": _config,
    "entityName": _user,
    "match": _user,
    "principal": _principal,
    "feature": _feature,
    "statesFilter": _state,
    "typesFilter": _state,
    "stateFilters": _state,
    "sourceTopics": _topic,
    "stores": _topic,
    "successors": _topic,
    "sessionId": _session,
    "sessionEpoch": _session_epoch,
}
"""By the name of the field."""

_NOUNS_OF: Final[dict[tuple[ApiKey, str], Noun]] = {
    (ApiKey.CREATE_TOPICS, "topics.name"): _new_topic,
    (ApiKey.CREATE_TOPICS, "topics.numPartitions"): _own_count,
    (ApiKey.CREATE_TOPICS, "topics.replicationFactor"): _own_count,
    (ApiKey.CREATE_PARTITIONS, "topics.count"): _wider,
    (ApiKey.LIST_CONFIG_RESOURCES, "resourceTypes"): _resource_type,
    (ApiKey.JOIN_GROUP, "groupInstanceId"): _static,
    (ApiKey.CREATE_TOPICS, "topics.assignments.partitionIndex"): _new_partition,
    (ApiKey.CREATE_TOPICS, "topics.configs.name"): _config,
    (ApiKey.CREATE_TOPICS, "topics.configs.value"): _setting,
    (ApiKey.ALTER_CONFIGS, "resources.configs.name"): _config,
    (ApiKey.ALTER_CONFIGS, "resources.configs.value"): _setting,
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "resources.configs.name"): _config,
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "resources.configs.value"): _setting,
    (ApiKey.JOIN_GROUP, "groupId"): _joined,
    (ApiKey.JOIN_GROUP, "protocols.name"): _protocol,
    (ApiKey.SYNC_GROUP, "groupId"): _crowd,
    (ApiKey.SYNC_GROUP, "memberId"): _leader,
    (ApiKey.SYNC_GROUP, "assignments.memberId"): _member,
    (ApiKey.LEAVE_GROUP, "groupId"): _crowd,
    (ApiKey.LEAVE_GROUP, "members.memberId"): _member,
    (ApiKey.ALTER_CLIENT_QUOTAS, "entries.ops.key"): _quota,
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "users.name"): _user,
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "deletions.name"): _user,
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "upsertions.name"): _user,
    (ApiKey.PRODUCE, "transactionalId"): _null,
}
"""By the API and where the field stands, where its name alone does not tell."""

_SPECIAL: Final[dict[tuple[ApiKey, str], Any]] = {
    (ApiKey.SYNC_GROUP, "generationId"): 1,
    (ApiKey.SYNC_GROUP, "protocolName"): "range",
    (ApiKey.DELETE_ACLS, "operation"): 2,
    (ApiKey.STREAMS_GROUP_HEARTBEAT, "value"): "v",
}


def _subscription(topics: list[str]) -> bytes:
    return consumer_protocol.encode_subscription(Subscription(topics=tuple(topics)), 1)


def _assignment(topics: list[str]) -> bytes:
    partitions = tuple(TopicPartition(topic, 0) for topic in topics)
    return consumer_protocol.encode_assignment(ConsumerAssignment(partitions=partitions))


_EMBEDDED: Final[dict[tuple[ApiKey, Path], Callable[[list[str]], bytes]]] = {
    (ApiKey.JOIN_GROUP, ("protocols", "metadata")): _subscription,
    (ApiKey.SYNC_GROUP, ("assignments", "assignment")): _assignment,
}
"""Bytes that are lists of topics to those who know."""
_TAGS: Final[Path] = ("tagged fields",)
"""Stands for tagged fields at the end of a request that nobody knows."""
_FIRST_TAG: Final = 1_000


def _noun_of(api: ApiKey, field: Field, path: Path) -> Noun | None:
    noun = _NOUNS_OF.get((api, ".".join(path)))
    if noun is None and field.name == "name" and len(path) > 1 and path[-2] in _TOPIC_NAMES:
        return _topic
    return noun or _NOUNS.get(field.name)


def grown_frame(world: CrowdedWorld, question: Question) -> bytes:
    """The request of a question, with as many items in its array as the world has of each thing."""
    frame = frame_of(question.api, question.version, _Draft(world, question, world.size).fields())
    if question.path != _TAGS:
        return frame
    tags = b"".join(
        unsigned_varint_bytes(_FIRST_TAG + each) + b"\x00" for each in range(world.size)
    )
    return frame[:-1] + unsigned_varint_bytes(world.size) + tags


# -- which questions there are -------------------------------------------------------------


def _arrays(api: ApiKey, layout: Layout, path: Path = ()) -> Iterator[tuple[Path, VersionField]]:
    for each in layout.present:
        here = (*path, each.field.name)
        if each.field.kind is Kind.ARRAY or (api, here) in _EMBEDDED:
            yield here, each
        if each.layout is not None:
            yield from _arrays(api, each.layout, here)


def _ways(path: Path, grown: VersionField) -> Iterator[tuple[Pattern, Names]]:
    entries = () if grown.layout is None else grown.layout.present
    inner = any(each.field.kind is Kind.ARRAY for each in entries)
    for pattern in (Pattern.DISTINCT, Pattern.REPEATED):
        yield pattern, Names.KNOWN
        yield pattern, Names.UNKNOWN
    yield Pattern.DISTINCT, Names.DENIED
    if inner:
        yield Pattern.SPREAD, Names.KNOWN
        yield Pattern.SPREAD, Names.UNKNOWN
        yield Pattern.SPREAD, Names.NOWHERE
    if len(path) > 1:
        yield Pattern.DISTINCT, Names.NOWHERE


def questions_of(api: ApiKey, version: int) -> list[Question]:
    """Everything that is asked of one version: each array, in each way."""
    layout = layout_of(api, version, response=False)
    found = []
    for path, grown in _arrays(api, layout):
        for pattern, names in _ways(path, grown):
            dresses = _DRESSES.get(api, ({},)) if pattern is Pattern.DISTINCT else ({},)
            found += [
                Question(
                    api=api, version=version, path=path, pattern=pattern, names=names, dress=dress
                )
                for dress in range(len(dresses))
            ]
    if layout.is_flexible:
        pattern, names = Pattern.DISTINCT, Names.UNKNOWN
        found.append(Question(api=api, version=version, path=_TAGS, pattern=pattern, names=names))
    return found
