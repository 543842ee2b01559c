"""Schemas of what a client asks of any broker: the versions it speaks, and the cluster's shape.

They stand apart from the group APIs of `SCHEMAS`: a group's client needs them, its coordinator
does not. The features that ApiVersions adds as tagged fields are passed over.

Source: kafka trunk, clients/src/main/resources/common/message/{ApiVersions,Metadata}*.json;
Metadata 13 as brokers 4.0 to 4.4 speak it.
"""

from typing import Final

from coordinator_sim.wire.schema import (
    Fields,
    boolean,
    int16,
    int32,
    int32s,
    string,
    structs,
    throttle,
    uuid,
)

API_VERSIONS_REQUEST: Final[Fields] = (
    string("clientSoftwareName", since=3, ignorable=True),
    string("clientSoftwareVersion", since=3, ignorable=True),
)
API_VERSIONS_RESPONSE: Final[Fields] = (
    int16("errorCode"),
    structs("apiKeys", (int16("apiKey"), int16("minVersion"), int16("maxVersion"))),
    throttle(1),
)

_NO_OPERATIONS: Final = -(1 << 31)

METADATA_REQUEST: Final[Fields] = (
    structs(
        "topics",
        (uuid("topicId", since=10, ignorable=True), string("name", nullable_since=10)),
        nullable_since=1,
    ),
    boolean("allowAutoTopicCreation", since=4, default=True, ignorable=True),
    boolean("includeClusterAuthorizedOperations", since=8, until=10),
    boolean("includeTopicAuthorizedOperations", since=8),
)
METADATA_RESPONSE: Final[Fields] = (
    throttle(3),
    structs(
        "brokers",
        (
            int32("nodeId"),
            string("host"),
            int32("port"),
            string("rack", since=1, nullable_since=1, default=None, ignorable=True),
        ),
    ),
    string("clusterId", since=2, nullable_since=2, default=None, ignorable=True),
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
            int32("topicAuthorizedOperations", since=8, default=_NO_OPERATIONS),
        ),
    ),
    int32("clusterAuthorizedOperations", since=8, until=10, default=_NO_OPERATIONS),
    int16("errorCode", since=13, ignorable=True),
)
