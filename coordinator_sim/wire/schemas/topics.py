"""Schemas of the APIs that make, grow, move and delete topics, and of DescribeLogDirs.

Source: kafka 3.9 and 4.4, clients/src/main/resources/common/message/{CreateTopics,DeleteTopics,
CreatePartitions,ElectLeaders,AlterPartitionReassignments,ListPartitionReassignments,
DescribeLogDirs}*.json.
"""

from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    boolean,
    int8,
    int16,
    int32,
    int32s,
    int64,
    optional,
    string,
    strings,
    structs,
    throttle,
    uuid,
)

CREATE_TOPICS: Final = MessageSchema(
    api_key=ApiKey.CREATE_TOPICS,
    name="CreateTopics",
    newest=7,
    flexible_since=5,
    request=(
        structs(
            "topics",
            (
                string("name"),
                int32("numPartitions"),
                int16("replicationFactor"),
                structs("assignments", (int32("partitionIndex"), int32s("brokerIds"))),
                structs("configs", (string("name"), string("value", nullable_since=0))),
            ),
        ),
        int32("timeoutMs", default=60000),
        boolean("validateOnly", since=1),
    ),
    response=(
        throttle(2),
        structs(
            "topics",
            (
                string("name"),
                uuid("topicId", since=7, ignorable=True),
                int16("errorCode"),
                string("errorMessage", since=1, nullable_since=1, ignorable=True),
                int16("topicConfigErrorCode", since=5, ignorable=True, tag=0),
                int32("numPartitions", since=5, default=-1, ignorable=True),
                int16("replicationFactor", since=5, default=-1, ignorable=True),
                structs(
                    "configs",
                    (
                        string("name"),
                        string("value", nullable_since=5),
                        boolean("readOnly"),
                        int8("configSource", default=-1, ignorable=True),
                        boolean("isSensitive"),
                    ),
                    since=5,
                    nullable_since=5,
                    ignorable=True,
                ),
            ),
        ),
    ),
)

DELETE_TOPICS: Final = MessageSchema(
    api_key=ApiKey.DELETE_TOPICS,
    name="DeleteTopics",
    newest=6,
    flexible_since=4,
    request=(
        structs("topics", (optional("name", 6), uuid("topicId")), since=6),
        strings("topicNames", until=5, ignorable=True),
        int32("timeoutMs"),
    ),
    response=(
        throttle(1),
        structs(
            "responses",
            (
                string("name", nullable_since=6),
                uuid("topicId", since=6, ignorable=True),
                int16("errorCode"),
                optional("errorMessage", 5, ignorable=True),
            ),
        ),
    ),
)

CREATE_PARTITIONS: Final = MessageSchema(
    api_key=ApiKey.CREATE_PARTITIONS,
    name="CreatePartitions",
    newest=3,
    flexible_since=2,
    request=(
        structs(
            "topics",
            (
                string("name"),
                int32("count"),
                structs("assignments", (int32s("brokerIds"),), nullable_since=0),
            ),
        ),
        int32("timeoutMs"),
        boolean("validateOnly"),
    ),
    response=(
        int32("throttleTimeMs"),
        structs("results", (string("name"), int16("errorCode"), optional("errorMessage", 0))),
    ),
)

ELECT_LEADERS: Final = MessageSchema(
    api_key=ApiKey.ELECT_LEADERS,
    name="ElectLeaders",
    newest=2,
    flexible_since=2,
    request=(
        int8("electionType", since=1),
        structs("topicPartitions", (string("topic"), int32s("partitions")), nullable_since=0),
        int32("timeoutMs", default=60000),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode", since=1),
        structs(
            "replicaElectionResults",
            (
                string("topic"),
                structs(
                    "partitionResult",
                    (
                        int32("partitionId"),
                        int16("errorCode"),
                        string("errorMessage", nullable_since=0),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_PARTITION_REASSIGNMENTS: Final = MessageSchema(
    api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    name="AlterPartitionReassignments",
    newest=1,
    flexible_since=0,
    request=(
        int32("timeoutMs", default=60000),
        boolean("allowReplicationFactorChange", since=1, default=True),
        structs(
            "topics",
            (
                string("name"),
                structs(
                    "partitions",
                    (int32("partitionIndex"), int32s("replicas", nullable_since=0, default=None)),
                ),
            ),
        ),
    ),
    response=(
        int32("throttleTimeMs"),
        boolean("allowReplicationFactorChange", since=1, default=True, ignorable=True),
        int16("errorCode"),
        string("errorMessage", nullable_since=0),
        structs(
            "responses",
            (
                string("name"),
                structs(
                    "partitions",
                    (
                        int32("partitionIndex"),
                        int16("errorCode"),
                        string("errorMessage", nullable_since=0),
                    ),
                ),
            ),
        ),
    ),
)

LIST_PARTITION_REASSIGNMENTS: Final = MessageSchema(
    api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    name="ListPartitionReassignments",
    newest=0,
    flexible_since=0,
    request=(
        int32("timeoutMs", default=60000),
        structs(
            "topics", (string("name"), int32s("partitionIndexes")), nullable_since=0, default=None
        ),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        string("errorMessage", nullable_since=0),
        structs(
            "topics",
            (
                string("name"),
                structs(
                    "partitions",
                    (
                        int32("partitionIndex"),
                        int32s("replicas"),
                        int32s("addingReplicas"),
                        int32s("removingReplicas"),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_LOG_DIRS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_LOG_DIRS,
    name="DescribeLogDirs",
    newest=5,
    flexible_since=2,
    request=(structs("topics", (string("topic"), int32s("partitions")), nullable_since=0),),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode", since=3, ignorable=True),
        structs(
            "results",
            (
                int16("errorCode"),
                string("logDir"),
                structs(
                    "topics",
                    (
                        string("name"),
                        structs(
                            "partitions",
                            (
                                int32("partitionIndex"),
                                int64("partitionSize"),
                                int64("offsetLag"),
                                boolean("isFutureKey"),
                            ),
                        ),
                    ),
                ),
                int64("totalBytes", since=4, default=-1, ignorable=True),
                int64("usableBytes", since=4, default=-1, ignorable=True),
                boolean("isCordoned", since=5, ignorable=True),
            ),
        ),
    ),
)
