"""Schemas of OffsetCommit, OffsetFetch and OffsetDelete.

Source: kafka trunk, clients/src/main/resources/common/message/{OffsetCommit,OffsetFetch,
OffsetDelete}*.json; OffsetCommit 0-1 and OffsetFetch 0 as in 3.9.
"""

from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    boolean,
    int16,
    int32,
    int32s,
    int64,
    optional,
    string,
    structs,
    throttle,
    uuid,
)

_TOPIC: Final = (
    string("name", until=9, ignorable=True),
    uuid("topicId", since=10, ignorable=True),
)

OFFSET_COMMIT: Final = MessageSchema(
    api_key=ApiKey.OFFSET_COMMIT,
    name="OffsetCommit",
    newest=10,
    flexible_since=8,
    request=(
        string("groupId"),
        int32("generationIdOrMemberEpoch", since=1, default=-1, ignorable=True),
        string("memberId", since=1, ignorable=True),
        optional("groupInstanceId", 7),
        int64("retentionTimeMs", since=2, until=4, default=-1, ignorable=True),
        structs(
            "topics",
            (
                *_TOPIC,
                structs(
                    "partitions",
                    (
                        int32("partitionIndex"),
                        int64("committedOffset"),
                        int32("committedLeaderEpoch", since=6, default=-1, ignorable=True),
                        int64("commitTimestamp", since=1, until=1, default=-1, ignorable=True),
                        string("committedMetadata", nullable_since=0),
                    ),
                ),
            ),
        ),
    ),
    response=(
        throttle(3),
        structs(
            "topics",
            (*_TOPIC, structs("partitions", (int32("partitionIndex"), int16("errorCode")))),
        ),
    ),
)

_FETCHED: Final = (
    int32("partitionIndex"),
    int64("committedOffset"),
    int32("committedLeaderEpoch", since=5, default=-1, ignorable=True),
    string("metadata", nullable_since=0),
    int16("errorCode"),
)

OFFSET_FETCH: Final = MessageSchema(
    api_key=ApiKey.OFFSET_FETCH,
    name="OffsetFetch",
    newest=10,
    flexible_since=6,
    request=(
        string("groupId", until=7),
        structs("topics", (string("name"), int32s("partitionIndexes")), until=7, nullable_since=2),
        structs(
            "groups",
            (
                string("groupId"),
                optional("memberId", 9, ignorable=True),
                int32("memberEpoch", since=9, default=-1, ignorable=True),
                structs("topics", (*_TOPIC, int32s("partitionIndexes")), nullable_since=8),
            ),
            since=8,
        ),
        boolean("requireStable", since=7),
    ),
    response=(
        throttle(3),
        structs("topics", (string("name"), structs("partitions", _FETCHED)), until=7),
        int16("errorCode", since=2, until=7, ignorable=True),
        structs(
            "groups",
            (
                string("groupId"),
                structs("topics", (*_TOPIC, structs("partitions", _FETCHED))),
                int16("errorCode"),
            ),
            since=8,
        ),
    ),
)

OFFSET_DELETE: Final = MessageSchema(
    api_key=ApiKey.OFFSET_DELETE,
    name="OffsetDelete",
    newest=0,
    request=(
        string("groupId"),
        structs("topics", (string("name"), structs("partitions", (int32("partitionIndex"),)))),
    ),
    response=(
        int16("errorCode"),
        throttle(0),
        structs(
            "topics",
            (
                string("name"),
                structs("partitions", (int32("partitionIndex"), int16("errorCode"))),
            ),
        ),
    ),
)
