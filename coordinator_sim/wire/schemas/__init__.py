"""The fields of every API's requests and responses, in all versions that Kafka ever had.

Here are the APIs that brokers serve to clients, but for those of share groups, Streams groups,
delegation tokens and telemetry.
"""

from functools import cache
from typing import Final

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import Layout, MessageSchema, struct_layout
from coordinator_sim.wire.schemas.admin import DELETE_GROUPS, DESCRIBE_GROUPS, LIST_GROUPS
from coordinator_sim.wire.schemas.cluster import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC_PARTITIONS,
    METADATA,
    UPDATE_FEATURES,
)
from coordinator_sim.wire.schemas.configs import (
    ALTER_CLIENT_QUOTAS,
    ALTER_CONFIGS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
)
from coordinator_sim.wire.schemas.consumer_groups import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
)
from coordinator_sim.wire.schemas.data import (
    DELETE_RECORDS,
    FETCH,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
)
from coordinator_sim.wire.schemas.membership import (
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from coordinator_sim.wire.schemas.offsets import OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from coordinator_sim.wire.schemas.producers import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
)
from coordinator_sim.wire.schemas.security import (
    ALTER_USER_SCRAM_CREDENTIALS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from coordinator_sim.wire.schemas.topics import (
    ALTER_PARTITION_REASSIGNMENTS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_LOG_DIRS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
)
from coordinator_sim.wire.schemas.transactions import (
    ADD_OFFSETS_TO_TXN,
    TXN_OFFSET_COMMIT,
    WRITE_TXN_MARKERS,
)

GROUP_SCHEMAS: Final[dict[ApiKey, MessageSchema]] = {
    schema.api_key: schema
    for schema in (
        OFFSET_COMMIT,
        OFFSET_FETCH,
        FIND_COORDINATOR,
        JOIN_GROUP,
        HEARTBEAT,
        LEAVE_GROUP,
        SYNC_GROUP,
        DESCRIBE_GROUPS,
        LIST_GROUPS,
        ADD_OFFSETS_TO_TXN,
        WRITE_TXN_MARKERS,
        TXN_OFFSET_COMMIT,
        DELETE_GROUPS,
        OFFSET_DELETE,
    )
}
"""The schemas of the group APIs, by API number."""

SCHEMAS: Final[dict[ApiKey, MessageSchema]] = GROUP_SCHEMAS | {
    schema.api_key: schema
    for schema in (
        PRODUCE,
        FETCH,
        LIST_OFFSETS,
        OFFSET_FOR_LEADER_EPOCH,
        DELETE_RECORDS,
        METADATA,
        API_VERSIONS,
        DESCRIBE_CLUSTER,
        DESCRIBE_TOPIC_PARTITIONS,
        UPDATE_FEATURES,
        CREATE_TOPICS,
        DELETE_TOPICS,
        CREATE_PARTITIONS,
        ELECT_LEADERS,
        ALTER_PARTITION_REASSIGNMENTS,
        LIST_PARTITION_REASSIGNMENTS,
        DESCRIBE_LOG_DIRS,
        DESCRIBE_CONFIGS,
        ALTER_CONFIGS,
        INCREMENTAL_ALTER_CONFIGS,
        LIST_CONFIG_RESOURCES,
        DESCRIBE_CLIENT_QUOTAS,
        ALTER_CLIENT_QUOTAS,
        SASL_HANDSHAKE,
        SASL_AUTHENTICATE,
        DESCRIBE_ACLS,
        CREATE_ACLS,
        DELETE_ACLS,
        DESCRIBE_USER_SCRAM_CREDENTIALS,
        ALTER_USER_SCRAM_CREDENTIALS,
        INIT_PRODUCER_ID,
        ADD_PARTITIONS_TO_TXN,
        END_TXN,
        DESCRIBE_PRODUCERS,
        DESCRIBE_TRANSACTIONS,
        LIST_TRANSACTIONS,
        CONSUMER_GROUP_HEARTBEAT,
        CONSUMER_GROUP_DESCRIBE,
    )
}
"""Every schema, by API number."""

_GROUP_API_BY_NAME: Final = {schema.name: schema for schema in GROUP_SCHEMAS.values()}


def schema_of(api: ApiKey) -> MessageSchema:
    """The schema of an API.

    Raises:
        UnsupportedVersion: nobody speaks the API here.
    """
    schema = SCHEMAS.get(api)
    if schema is None:
        raise UnsupportedVersion(f"{api.name} is not spoken here")
    return schema


def schema_named(name: str) -> MessageSchema:
    """The schema of a group API by Kafka's name of it, as `JoinGroup`.

    Raises:
        UnsupportedVersion: no such API; the message lists the known ones.
    """
    schema = _GROUP_API_BY_NAME.get(name)
    if schema is None:
        known = ", ".join(_GROUP_API_BY_NAME)
        raise UnsupportedVersion(f"unknown API {name!r}: use one of {known}")
    return schema


@cache
def layout_of(api: ApiKey, version: int, *, response: bool) -> Layout:
    """The fields of the requests or the responses of one version.

    Raises:
        UnsupportedVersion: nobody speaks the API here, or Kafka never had the version.
    """
    schema = schema_of(api)
    if not 0 <= version <= schema.newest:
        raise UnsupportedVersion(
            f"{schema.name} has no version {version}: use 0 to {schema.newest}"
        )
    name = f"{schema.name}{'Response' if response else 'Request'}"
    fields = schema.response if response else schema.request
    return struct_layout(name, fields, version, flexible=version >= schema.flexible_since)
