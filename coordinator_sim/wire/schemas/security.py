"""Schemas of SASL, ACLs and SCRAM credentials.

Source: kafka 3.9 and 4.4, clients/src/main/resources/common/message/{SaslHandshake,
SaslAuthenticate,DescribeAcls,CreateAcls,DeleteAcls,DescribeUserScramCredentials,
AlterUserScramCredentials}*.json.
"""

from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    data,
    int8,
    int16,
    int32,
    int64,
    string,
    strings,
    structs,
)

SASL_HANDSHAKE: Final = MessageSchema(
    api_key=ApiKey.SASL_HANDSHAKE,
    name="SaslHandshake",
    newest=1,
    request=(string("mechanism"),),
    response=(int16("errorCode"), strings("mechanisms")),
)

SASL_AUTHENTICATE: Final = MessageSchema(
    api_key=ApiKey.SASL_AUTHENTICATE,
    name="SaslAuthenticate",
    newest=2,
    flexible_since=2,
    request=(data("authBytes"),),
    response=(
        int16("errorCode"),
        string("errorMessage", nullable_since=0),
        data("authBytes"),
        int64("sessionLifetimeMs", since=1, ignorable=True),
    ),
)

DESCRIBE_ACLS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_ACLS,
    name="DescribeAcls",
    newest=3,
    flexible_since=2,
    request=(
        int8("resourceTypeFilter"),
        string("resourceNameFilter", nullable_since=0),
        int8("patternTypeFilter", since=1, default=3),
        string("principalFilter", nullable_since=0),
        string("hostFilter", nullable_since=0),
        int8("operation"),
        int8("permissionType"),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        string("errorMessage", nullable_since=0),
        structs(
            "resources",
            (
                int8("resourceType"),
                string("resourceName"),
                int8("patternType", since=1, default=3),
                structs(
                    "acls",
                    (
                        string("principal"),
                        string("host"),
                        int8("operation"),
                        int8("permissionType"),
                    ),
                ),
            ),
        ),
    ),
)

CREATE_ACLS: Final = MessageSchema(
    api_key=ApiKey.CREATE_ACLS,
    name="CreateAcls",
    newest=3,
    flexible_since=2,
    request=(
        structs(
            "creations",
            (
                int8("resourceType"),
                string("resourceName"),
                int8("resourcePatternType", since=1, default=3),
                string("principal"),
                string("host"),
                int8("operation"),
                int8("permissionType"),
            ),
        ),
    ),
    response=(
        int32("throttleTimeMs"),
        structs("results", (int16("errorCode"), string("errorMessage", nullable_since=0))),
    ),
)

DELETE_ACLS: Final = MessageSchema(
    api_key=ApiKey.DELETE_ACLS,
    name="DeleteAcls",
    newest=3,
    flexible_since=2,
    request=(
        structs(
            "filters",
            (
                int8("resourceTypeFilter"),
                string("resourceNameFilter", nullable_since=0),
                int8("patternTypeFilter", since=1, default=3),
                string("principalFilter", nullable_since=0),
                string("hostFilter", nullable_since=0),
                int8("operation"),
                int8("permissionType"),
            ),
        ),
    ),
    response=(
        int32("throttleTimeMs"),
        structs(
            "filterResults",
            (
                int16("errorCode"),
                string("errorMessage", nullable_since=0),
                structs(
                    "matchingAcls",
                    (
                        int16("errorCode"),
                        string("errorMessage", nullable_since=0),
                        int8("resourceType"),
                        string("resourceName"),
                        int8("patternType", since=1, default=3),
                        string("principal"),
                        string("host"),
                        int8("operation"),
                        int8("permissionType"),
                    ),
                ),
            ),
        ),
    ),
)

DESCRIBE_USER_SCRAM_CREDENTIALS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    name="DescribeUserScramCredentials",
    newest=0,
    flexible_since=0,
    request=(structs("users", (string("name"),), nullable_since=0),),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        string("errorMessage", nullable_since=0),
        structs(
            "results",
            (
                string("user"),
                int16("errorCode"),
                string("errorMessage", nullable_since=0),
                structs("credentialInfos", (int8("mechanism"), int32("iterations"))),
            ),
        ),
    ),
)

ALTER_USER_SCRAM_CREDENTIALS: Final = MessageSchema(
    api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    name="AlterUserScramCredentials",
    newest=0,
    flexible_since=0,
    request=(
        structs("deletions", (string("name"), int8("mechanism"))),
        structs(
            "upsertions",
            (
                string("name"),
                int8("mechanism"),
                int32("iterations"),
                data("salt"),
                data("saltedPassword"),
            ),
        ),
    ),
    response=(
        int32("throttleTimeMs"),
        structs(
            "results",
            (string("user"), int16("errorCode"), string("errorMessage", nullable_since=0)),
        ),
    ),
)
