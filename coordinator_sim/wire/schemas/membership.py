"""Schemas of the APIs by which members come, stay and go, and of FindCoordinator.

Source: kafka trunk, clients/src/main/resources/common/message/{FindCoordinator,JoinGroup,
SyncGroup,Heartbeat,LeaveGroup}*.json.
"""

from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    boolean,
    data,
    int8,
    int16,
    int32,
    optional,
    string,
    strings,
    structs,
    throttle,
)

FIND_COORDINATOR: Final = MessageSchema(
    api_key=ApiKey.FIND_COORDINATOR,
    name="FindCoordinator",
    newest=6,
    flexible_since=3,
    request=(
        string("key", until=3),
        int8("keyType", since=1),
        strings("coordinatorKeys", since=4),
    ),
    response=(
        throttle(1),
        int16("errorCode", until=3),
        string("errorMessage", since=1, until=3, nullable_since=1, ignorable=True),
        int32("nodeId", until=3),
        string("host", until=3),
        int32("port", until=3),
        structs(
            "coordinators",
            (
                string("key"),
                int32("nodeId"),
                string("host"),
                int32("port"),
                int16("errorCode"),
                string("errorMessage", nullable_since=4, ignorable=True),
            ),
            since=4,
        ),
    ),
)

JOIN_GROUP: Final = MessageSchema(
    api_key=ApiKey.JOIN_GROUP,
    name="JoinGroup",
    newest=9,
    flexible_since=6,
    request=(
        string("groupId"),
        int32("sessionTimeoutMs"),
        int32("rebalanceTimeoutMs", since=1, default=-1, ignorable=True),
        string("memberId"),
        optional("groupInstanceId", 5),
        string("protocolType"),
        structs("protocols", (string("name"), data("metadata"))),
        optional("reason", 8, ignorable=True),
    ),
    response=(
        throttle(2),
        int16("errorCode"),
        int32("generationId", default=-1),
        optional("protocolType", 7, ignorable=True),
        string("protocolName", nullable_since=7),
        string("leader"),
        boolean("skipAssignment", since=9),
        string("memberId"),
        structs(
            "members",
            (
                string("memberId"),
                optional("groupInstanceId", 5, ignorable=True),
                data("metadata"),
            ),
        ),
    ),
)

SYNC_GROUP: Final = MessageSchema(
    api_key=ApiKey.SYNC_GROUP,
    name="SyncGroup",
    newest=5,
    flexible_since=4,
    request=(
        string("groupId"),
        int32("generationId"),
        string("memberId"),
        optional("groupInstanceId", 3),
        optional("protocolType", 5, ignorable=True),
        optional("protocolName", 5, ignorable=True),
        structs("assignments", (string("memberId"), data("assignment"))),
    ),
    response=(
        throttle(1),
        int16("errorCode"),
        optional("protocolType", 5, ignorable=True),
        optional("protocolName", 5, ignorable=True),
        data("assignment"),
    ),
)

HEARTBEAT: Final = MessageSchema(
    api_key=ApiKey.HEARTBEAT,
    name="Heartbeat",
    newest=4,
    flexible_since=4,
    request=(
        string("groupId"),
        int32("generationId"),
        string("memberId"),
        optional("groupInstanceId", 3),
    ),
    response=(throttle(1), int16("errorCode")),
)

LEAVE_GROUP: Final = MessageSchema(
    api_key=ApiKey.LEAVE_GROUP,
    name="LeaveGroup",
    newest=5,
    flexible_since=4,
    request=(
        string("groupId"),
        string("memberId", until=2),
        structs(
            "members",
            (
                string("memberId"),
                optional("groupInstanceId", 3),
                optional("reason", 5, ignorable=True),
            ),
            since=3,
        ),
    ),
    response=(
        throttle(1),
        int16("errorCode"),
        structs(
            "members",
            (
                string("memberId"),
                string("groupInstanceId", nullable_since=3),
                int16("errorCode"),
            ),
            since=3,
        ),
    ),
)
