"""Schemas of the APIs of configurations and of client quotas.

Source: kafka 3.9 and 4.4, clients/src/main/resources/common/message/{DescribeConfigs,AlterConfigs,
IncrementalAlterConfigs,ListConfigResources,DescribeClientQuotas,AlterClientQuotas}*.json.
"""

from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import (
    MessageSchema,
    boolean,
    float64,
    int8,
    int8s,
    int16,
    int32,
    string,
    strings,
    structs,
)

DESCRIBE_CONFIGS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_CONFIGS,
    name="DescribeConfigs",
    newest=4,
    flexible_since=4,
    request=(
        structs(
            "resources",
            (
                int8("resourceType"),
                string("resourceName"),
                strings("configurationKeys", nullable_since=0),
            ),
        ),
        boolean("includeSynonyms", since=1),
        boolean("includeDocumentation", since=3),
    ),
    response=(
        int32("throttleTimeMs"),
        structs(
            "results",
            (
                int16("errorCode"),
                string("errorMessage", nullable_since=0),
                int8("resourceType"),
                string("resourceName"),
                structs(
                    "configs",
                    (
                        string("name"),
                        string("value", nullable_since=0),
                        boolean("readOnly"),
                        boolean("isDefault", until=0),
                        int8("configSource", since=1, default=-1, ignorable=True),
                        boolean("isSensitive"),
                        structs(
                            "synonyms",
                            (string("name"), string("value", nullable_since=1), int8("source")),
                            since=1,
                            ignorable=True,
                        ),
                        int8("configType", since=3, ignorable=True),
                        string("documentation", since=3, nullable_since=3, ignorable=True),
                    ),
                ),
            ),
        ),
    ),
)

ALTER_CONFIGS: Final = MessageSchema(
    api_key=ApiKey.ALTER_CONFIGS,
    name="AlterConfigs",
    newest=2,
    flexible_since=2,
    request=(
        structs(
            "resources",
            (
                int8("resourceType"),
                string("resourceName"),
                structs("configs", (string("name"), string("value", nullable_since=0))),
            ),
        ),
        boolean("validateOnly"),
    ),
    response=(
        int32("throttleTimeMs"),
        structs(
            "responses",
            (
                int16("errorCode"),
                string("errorMessage", nullable_since=0),
                int8("resourceType"),
                string("resourceName"),
            ),
        ),
    ),
)

INCREMENTAL_ALTER_CONFIGS: Final = MessageSchema(
    api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    name="IncrementalAlterConfigs",
    newest=1,
    flexible_since=1,
    request=(
        structs(
            "resources",
            (
                int8("resourceType"),
                string("resourceName"),
                structs(
                    "configs",
                    (string("name"), int8("configOperation"), string("value", nullable_since=0)),
                ),
            ),
        ),
        boolean("validateOnly"),
    ),
    response=(
        int32("throttleTimeMs"),
        structs(
            "responses",
            (
                int16("errorCode"),
                string("errorMessage", nullable_since=0),
                int8("resourceType"),
                string("resourceName"),
            ),
        ),
    ),
)

LIST_CONFIG_RESOURCES: Final = MessageSchema(
    api_key=ApiKey.LIST_CONFIG_RESOURCES,
    name="ListConfigResources",
    newest=1,
    flexible_since=0,
    request=(int8s("resourceTypes", since=1),),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        structs(
            "configResources",
            (string("resourceName"), int8("resourceType", since=1, default=16, ignorable=True)),
        ),
    ),
)

DESCRIBE_CLIENT_QUOTAS: Final = MessageSchema(
    api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
    name="DescribeClientQuotas",
    newest=1,
    flexible_since=1,
    request=(
        structs(
            "components",
            (string("entityType"), int8("matchType"), string("match", nullable_since=0)),
        ),
        boolean("strict"),
    ),
    response=(
        int32("throttleTimeMs"),
        int16("errorCode"),
        string("errorMessage", nullable_since=0),
        structs(
            "entries",
            (
                structs("entity", (string("entityType"), string("entityName", nullable_since=0))),
                structs("values", (string("key"), float64("value"))),
            ),
            nullable_since=0,
        ),
    ),
)

ALTER_CLIENT_QUOTAS: Final = MessageSchema(
    api_key=ApiKey.ALTER_CLIENT_QUOTAS,
    name="AlterClientQuotas",
    newest=1,
    flexible_since=1,
    request=(
        structs(
            "entries",
            (
                structs("entity", (string("entityType"), string("entityName", nullable_since=0))),
                structs("ops", (string("key"), float64("value"), boolean("remove"))),
            ),
        ),
        boolean("validateOnly"),
    ),
    response=(
        int32("throttleTimeMs"),
        structs(
            "entries",
            (
                int16("errorCode"),
                string("errorMessage", nullable_since=0),
                structs("entity", (string("entityType"), string("entityName", nullable_since=0))),
            ),
        ),
    ),
)
