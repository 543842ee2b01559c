"""Schemas of what a client asks of any broker: the versions it speaks, and the cluster's shape.

Source: kafka 3.9 and 4.4, clients/src/main/resources/common/message/{Metadata,ApiVersions,
DescribeCluster,DescribeTopicPartitions,UpdateFeatures}*.json.
"""

from typing import Final

from coordinator_sim.protocol.admin_messages import NO_AUTHORIZED_OPERATIONS
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
    struct,
    structs,
    throttle,
    uuid,
)

METADATA: Final = MessageSchema(
    api_key=ApiKey.METADATA,
    name="Metadata",
    newest=13,
    flexible_since=9,
    request=(
        structs(
            "topics",
            (uuid("topicId", since=10, ignorable=True), string("name", nullable_since=10)),
            nullable_since=1,
        ),
        boolean("allowAutoTopicCreation", since=4, default=True),
        boolean("includeClusterAuthorizedOperations", since=8, until=10),
        boolean("includeTopicAuthorizedOperations", since=8),
    ),
    response=(
        throttle(3),
        structs(
            "brokers",
            (int32("nodeId"), string("host"), int32("port"), optional("rack", 1, ignorable=True)),
        ),
        optional("clusterId", 2, ignorable=True),
        int32("controllerId", since=1, default=-1, ignorable=True),
        structs(
            "topics",
            (
                int16("errorCode"),
                string("name", nullable_since=12),
                uuid("topicId", since=10, ignorable=True),
                boolean("isInternal", since=1, ignorable=True),
                structs(
                    "partitions",
                    (
                        int16("errorCode"),
                        int32("partitionIndex"),
                        int32("leaderId"),
                        int32("leaderEpoch", since=7, default=-1, ignorable=True),
                        int32s("replicaNodes"),
                        int32s("isrNodes"),
                        int32s("offlineReplicas", since=5, ignorable=True),
                    ),
                ),
                int32("topicAuthorizedOperations", since=8, default=NO_AUTHORIZED_OPERATIONS),
            ),
        ),
        int32("clusterAuthorizedOperations", since=8, until=10, default=NO_AUTHORIZED_OPERATIONS),
        int16("errorCode", since=13, ignorable=True),
    ),
)

API_VERSIONS: Final = MessageSchema(
    api_key=ApiKey.API_VERSIONS,
    name="ApiVersions",
    newest=5,
    flexible_since=3,
    request=(
        string("clientSoftwareName", since=3, ignorable=True),
        string("clientSoftwareVersion", since=3, ignorable=True),
        optional("clusterId", 5, ignorable=True),
        int32("nodeId", since=5, default=-1, ignorable=True),
    ),
    response=(
        int16("errorCode"),
        structs("apiKeys", (int16("apiKey"), int16("minVersion"), int16("maxVersion"))),
        throttle(1),
        structs(
            "supportedFeatures",
            (string("name"), int16("minVersion"), int16("maxVersion")),
            since=3,
            ignorable=True,
            tag=0,
        ),
        int64("finalizedFeaturesEpoch", since=3, default=-1, ignorable=True, tag=1),
        structs(
            "finalizedFeatures",
            (string("name"), int16("maxVersionLevel"), int16("minVersionLevel")),
            since=3,
            ignorable=True,
            tag=2,
        ),
        boolean("zkMigrationReady", since=3, ignorable=True, tag=3),
    ),
)

DESCRIBE_CLUSTER: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_CLUSTER,
    name="DescribeCluster",
    newest=2,
    flexible_since=0,
    request=(
        boolean("includeClusterAuthorizedOperations"),
        int8("endpointType", since=1, default=1),
        boolean("includeFencedBrokers", since=2),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        optional("errorMessage", 0),
        int8("endpointType", since=1, default=1),
        string("clusterId"),
        int32("controllerId", default=-1),
        structs(
            "brokers",
            (
                int32("brokerId"),
                string("host"),
                int32("port"),
                optional("rack", 0),
                boolean("isFenced", since=2),
            ),
        ),
        int32("clusterAuthorizedOperations", default=NO_AUTHORIZED_OPERATIONS),
    ),
)

DESCRIBE_TOPIC_PARTITIONS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    name="DescribeTopicPartitions",
    newest=0,
    flexible_since=0,
    request=(
        structs("topics", (string("name"),)),
        int32("responsePartitionLimit", default=2000),
        struct(
            "cursor", (string("topicName"), int32("partitionIndex")), nullable_since=0, default=None
        ),
    ),
    response=(
        throttle(0),
        structs(
            "topics",
            (
                int16("errorCode"),
                string("name", nullable_since=0),
                uuid("topicId", ignorable=True),
                boolean("isInternal", ignorable=True),
                structs(
                    "partitions",
                    (
                        int16("errorCode"),
                        int32("partitionIndex"),
                        int32("leaderId"),
                        int32("leaderEpoch", default=-1, ignorable=True),
                        int32s("replicaNodes"),
                        int32s("isrNodes"),
                        int32s("eligibleLeaderReplicas", nullable_since=0, default=None),
                        int32s("lastKnownElr", nullable_since=0, default=None),
                        int32s("offlineReplicas", ignorable=True),
                    ),
                ),
                int32("topicAuthorizedOperations", default=NO_AUTHORIZED_OPERATIONS),
            ),
        ),
        struct(
            "nextCursor",
            (string("topicName"), int32("partitionIndex")),
            nullable_since=0,
            default=None,
        ),
    ),
)

UPDATE_FEATURES: Final = MessageSchema(
    api_key=ApiKey.UPDATE_FEATURES,
    name="UpdateFeatures",
    newest=2,
    flexible_since=0,
    request=(
        int32("timeoutMs", default=60000),
        structs(
            "featureUpdates",
            (
                string("feature"),
                int16("maxVersionLevel"),
                boolean("allowDowngrade", until=0),
                int8("upgradeType", since=1, default=1),
            ),
        ),
        boolean("validateOnly", since=1),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        string("errorMessage", nullable_since=0),
        structs(
            "results",
            (string("feature"), int16("errorCode"), string("errorMessage", nullable_since=0)),
            until=1,
            ignorable=True,
        ),
    ),
)
