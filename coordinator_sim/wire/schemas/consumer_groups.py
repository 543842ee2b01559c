"""Schemas of the APIs of consumer groups of KIP-848.

Source: kafka trunk, clients/src/main/resources/common/message/ConsumerGroup{Heartbeat,
Describe}*.json.
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
    optional,
    string,
    strings,
    struct,
    structs,
    throttle,
    uuid,
)

_OWNED: Final = structs("topicPartitions", (uuid("topicId"), int32s("partitions")))
_ASSIGNED: Final = (
    structs("topicPartitions", (uuid("topicId"), string("topicName"), int32s("partitions"))),
)

CONSUMER_GROUP_HEARTBEAT: Final = MessageSchema(
    api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT,
    name="ConsumerGroupHeartbeat",
    newest=1,
    flexible_since=0,
    request=(
        string("groupId"),
        string("memberId"),
        int32("memberEpoch"),
        optional("instanceId", 0),
        optional("rackId", 0),
        int32("rebalanceTimeoutMs", default=-1),
        strings("subscribedTopicNames", nullable_since=0, default=None),
        optional("subscribedTopicRegex", 1),
        optional("serverAssignor", 0),
        structs(
            "topicPartitions",
            (uuid("topicId"), int32s("partitions")),
            nullable_since=0,
            default=None,
        ),
    ),
    response=(
        throttle(0),
        int16("errorCode"),
        optional("errorMessage", 0),
        optional("memberId", 0),
        int32("memberEpoch"),
        int32("heartbeatIntervalMs"),
        struct("assignment", (_OWNED,), nullable_since=0, default=None),
    ),
)

CONSUMER_GROUP_DESCRIBE: Final = MessageSchema(
    api_key=ApiKey.CONSUMER_GROUP_DESCRIBE,
    name="ConsumerGroupDescribe",
    newest=1,
    flexible_since=0,
    request=(strings("groupIds"), boolean("includeAuthorizedOperations")),
    response=(
        throttle(0),
        structs(
            "groups",
            (
                int16("errorCode"),
                optional("errorMessage", 0),
                string("groupId"),
                string("groupState"),
                int32("groupEpoch"),
                int32("assignmentEpoch"),
                string("assignorName"),
                structs(
                    "members",
                    (
                        string("memberId"),
                        optional("instanceId", 0),
                        optional("rackId", 0),
                        int32("memberEpoch"),
                        string("clientId"),
                        string("clientHost"),
                        strings("subscribedTopicNames"),
                        optional("subscribedTopicRegex", 0),
                        struct("assignment", _ASSIGNED),
                        struct("targetAssignment", _ASSIGNED),
                        int8("memberType", since=1, default=-1, ignorable=True),
                    ),
                ),
                int32("authorizedOperations", default=NO_AUTHORIZED_OPERATIONS),
            ),
        ),
    ),
)
