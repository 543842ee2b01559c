"""Schemas of the APIs that write, read and cut the logs of partitions.

Source: kafka 3.9 and 4.4, clients/src/main/resources/common/message/{Produce,Fetch,ListOffsets,
OffsetForLeaderEpoch,DeleteRecords}*.json.
"""

from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    int8,
    int16,
    int32,
    int32s,
    int64,
    int64s,
    optional,
    records,
    string,
    struct,
    structs,
    throttle,
    uuid,
)

PRODUCE: Final = MessageSchema(
    api_key=ApiKey.PRODUCE,
    name="Produce",
    newest=13,
    flexible_since=9,
    request=(
        optional("transactionalId", 3),
        int16("acks"),
        int32("timeoutMs"),
        structs(
            "topicData",
            (
                string("name", until=12, ignorable=True),
                uuid("topicId", since=13, ignorable=True),
                structs("partitionData", (int32("index"), records("records"))),
            ),
        ),
    ),
    response=(
        structs(
            "responses",
            (
                string("name", until=12, ignorable=True),
                uuid("topicId", since=13, ignorable=True),
                structs(
                    "partitionResponses",
                    (
                        int32("index"),
                        int16("errorCode"),
                        int64("baseOffset"),
                        int64("logAppendTimeMs", since=2, default=-1, ignorable=True),
                        int64("logStartOffset", since=5, default=-1, ignorable=True),
                        structs(
                            "recordErrors",
                            (int32("batchIndex"), optional("batchIndexErrorMessage", 8)),
                            since=8,
                            ignorable=True,
                        ),
                        optional("errorMessage", 8, ignorable=True),
                        struct(
                            "currentLeader",
                            (int32("leaderId", default=-1), int32("leaderEpoch", default=-1)),
                            since=10,
                            tag=0,
                        ),
                    ),
                ),
            ),
        ),
        throttle(1),
        structs(
            "nodeEndpoints",
            (int32("nodeId"), string("host"), int32("port"), optional("rack", 10)),
            since=10,
            tag=0,
        ),
    ),
)

FETCH: Final = MessageSchema(
    api_key=ApiKey.FETCH,
    name="Fetch",
    newest=18,
    flexible_since=12,
    request=(
        string("clusterId", since=12, nullable_since=12, default=None, ignorable=True, tag=0),
        int32("replicaId", until=14, default=-1),
        struct(
            "replicaState",
            (int32("replicaId", default=-1), int64("replicaEpoch", default=-1)),
            since=15,
            tag=1,
        ),
        int32("maxWaitMs"),
        int32("minBytes"),
        int32("maxBytes", since=3, default=(1 << 31) - 1, ignorable=True),
        int8("isolationLevel", since=4, ignorable=True),
        int32("sessionId", since=7, ignorable=True),
        int32("sessionEpoch", since=7, default=-1, ignorable=True),
        structs(
            "topics",
            (
                string("topic", until=12, ignorable=True),
                uuid("topicId", since=13, ignorable=True),
                structs(
                    "partitions",
                    (
                        int32("partition"),
                        int32("currentLeaderEpoch", since=9, default=-1, ignorable=True),
                        int64("fetchOffset"),
                        int32("lastFetchedEpoch", since=12, default=-1),
                        int64("logStartOffset", since=5, default=-1, ignorable=True),
                        int32("partitionMaxBytes"),
                        uuid("replicaDirectoryId", since=17, ignorable=True, tag=0),
                        int64(
                            "highWatermark", since=18, default=(1 << 63) - 1, ignorable=True, tag=1
                        ),
                    ),
                ),
            ),
        ),
        structs(
            "forgottenTopicsData",
            (
                string("topic", until=12, ignorable=True),
                uuid("topicId", since=13, ignorable=True),
                int32s("partitions"),
            ),
            since=7,
        ),
        string("rackId", since=11, ignorable=True),
    ),
    response=(
        throttle(1),
        int16("errorCode", since=7, ignorable=True),
        int32("sessionId", since=7),
        structs(
            "responses",
            (
                string("topic", until=12, ignorable=True),
                uuid("topicId", since=13, ignorable=True),
                structs(
                    "partitions",
                    (
                        int32("partitionIndex"),
                        int16("errorCode"),
                        int64("highWatermark"),
                        int64("lastStableOffset", since=4, default=-1, ignorable=True),
                        int64("logStartOffset", since=5, default=-1, ignorable=True),
                        struct(
                            "divergingEpoch",
                            (int32("epoch", default=-1), int64("endOffset", default=-1)),
                            since=12,
                            tag=0,
                        ),
                        struct(
                            "currentLeader",
                            (int32("leaderId", default=-1), int32("leaderEpoch", default=-1)),
                            since=12,
                            tag=1,
                        ),
                        struct(
                            "snapshotId",
                            (int64("endOffset", default=-1), int32("epoch", default=-1)),
                            since=12,
                            tag=2,
                        ),
                        structs(
                            "abortedTransactions",
                            (int64("producerId"), int64("firstOffset")),
                            since=4,
                            nullable_since=4,
                            ignorable=True,
                        ),
                        int32("preferredReadReplica", since=11, default=-1),
                        records("records"),
                    ),
                ),
            ),
        ),
        structs(
            "nodeEndpoints",
            (int32("nodeId"), string("host"), int32("port"), optional("rack", 16)),
            since=16,
            tag=0,
        ),
    ),
)

LIST_OFFSETS: Final = MessageSchema(
    api_key=ApiKey.LIST_OFFSETS,
    name="ListOffsets",
    newest=11,
    flexible_since=6,
    request=(
        int32("replicaId"),
        int8("isolationLevel", since=2),
        structs(
            "topics",
            (
                string("name"),
                structs(
                    "partitions",
                    (
                        int32("partitionIndex"),
                        int32("currentLeaderEpoch", since=4, default=-1, ignorable=True),
                        int64("timestamp"),
                        int32("maxNumOffsets", until=0, default=1),
                    ),
                ),
            ),
        ),
        int32("timeoutMs", since=10, ignorable=True),
    ),
    response=(
        throttle(2),
        structs(
            "topics",
            (
                string("name"),
                structs(
                    "partitions",
                    (
                        int32("partitionIndex"),
                        int16("errorCode"),
                        int64s("oldStyleOffsets", until=0),
                        int64("timestamp", since=1, default=-1),
                        int64("offset", since=1, default=-1),
                        int32("leaderEpoch", since=4, default=-1),
                    ),
                ),
            ),
        ),
    ),
)

OFFSET_FOR_LEADER_EPOCH: Final = MessageSchema(
    api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    name="OffsetForLeaderEpoch",
    newest=4,
    flexible_since=4,
    request=(
        int32("replicaId", since=3, default=-2, ignorable=True),
        structs(
            "topics",
            (
                string("topic"),
                structs(
                    "partitions",
                    (
                        int32("partition"),
                        int32("currentLeaderEpoch", since=2, default=-1, ignorable=True),
                        int32("leaderEpoch"),
                    ),
                ),
            ),
        ),
    ),
    response=(
        throttle(2),
        structs(
            "topics",
            (
                string("topic"),
                structs(
                    "partitions",
                    (
                        int16("errorCode"),
                        int32("partition"),
                        int32("leaderEpoch", since=1, default=-1, ignorable=True),
                        int64("endOffset", default=-1),
                    ),
                ),
            ),
        ),
    ),
)

DELETE_RECORDS: Final = MessageSchema(
    api_key=ApiKey.DELETE_RECORDS,
    name="DeleteRecords",
    newest=2,
    flexible_since=2,
    request=(
        structs(
            "topics",
            (string("name"), structs("partitions", (int32("partitionIndex"), int64("offset")))),
        ),
        int32("timeoutMs"),
    ),
    response=(
        int32("throttleTimeMs"),
        structs(
            "topics",
            (
                string("name"),
                structs(
                    "partitions",
                    (int32("partitionIndex"), int64("lowWatermark"), int16("errorCode")),
                ),
            ),
        ),
    ),
)
