"""Schemas of DescribeGroups, ListGroups and DeleteGroups.

Source: kafka trunk, clients/src/main/resources/common/message/{DescribeGroups,ListGroups,
DeleteGroups}*.json.
"""

from typing import Final

from coordinator_sim.protocol.admin_messages import NO_AUTHORIZED_OPERATIONS
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    boolean,
    data,
    int16,
    int32,
    optional,
    string,
    strings,
    structs,
    throttle,
)

DESCRIBE_GROUPS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_GROUPS,
    name="DescribeGroups",
    newest=6,
    flexible_since=5,
    request=(strings("groups"), boolean("includeAuthorizedOperations", since=3)),
    response=(
        throttle(1),
        structs(
            "groups",
            (
                int16("errorCode"),
                optional("errorMessage", 6, ignorable=True),
                string("groupId"),
                string("groupState"),
                string("protocolType"),
                string("protocolData"),
                structs(
                    "members",
                    (
                        string("memberId"),
                        optional("groupInstanceId", 4, ignorable=True),
                        string("clientId"),
                        string("clientHost"),
                        data("memberMetadata"),
                        data("memberAssignment"),
                    ),
                ),
                int32("authorizedOperations", since=3, default=NO_AUTHORIZED_OPERATIONS),
            ),
        ),
    ),
)

LIST_GROUPS: Final = MessageSchema(
    api_key=ApiKey.LIST_GROUPS,
    name="ListGroups",
    newest=5,
    flexible_since=3,
    request=(strings("statesFilter", since=4), strings("typesFilter", since=5)),
    response=(
        throttle(1),
        int16("errorCode"),
        structs(
            "groups",
            (
                string("groupId"),
                string("protocolType"),
                string("groupState", since=4, ignorable=True),
                string("groupType", since=5, ignorable=True),
            ),
        ),
    ),
)

DELETE_GROUPS: Final = MessageSchema(
    api_key=ApiKey.DELETE_GROUPS,
    name="DeleteGroups",
    newest=3,
    flexible_since=2,
    request=(strings("groupsNames"),),
    response=(
        throttle(0),
        structs(
            "results",
            (
                string("groupId"),
                int16("errorCode"),
                optional("errorMessage", 3, ignorable=True),
            ),
        ),
    ),
)
