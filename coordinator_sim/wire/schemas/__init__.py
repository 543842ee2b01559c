"""The fields of every group API's requests and responses, in all versions."""

from functools import cache
from typing import Final

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.schema import Layout, MessageSchema, struct_layout
from coordinator_sim.wire.schemas.admin import DELETE_GROUPS, DESCRIBE_GROUPS, LIST_GROUPS
from coordinator_sim.wire.schemas.membership import (
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from coordinator_sim.wire.schemas.offsets import OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from coordinator_sim.wire.schemas.transactions import (
    ADD_OFFSETS_TO_TXN,
    TXN_OFFSET_COMMIT,
    WRITE_TXN_MARKERS,
)

SCHEMAS: Final[dict[ApiKey, MessageSchema]] = {
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
"""Every schema, by API number."""

_BY_NAME: Final = {schema.name: schema for schema in SCHEMAS.values()}


def schema_of(api: ApiKey) -> MessageSchema:
    """The schema of an API.

    Raises:
        UnsupportedVersion: the API is not one of the group APIs.
    """
    schema = SCHEMAS.get(api)
    if schema is None:
        raise UnsupportedVersion(f"{api.name} is not one of the group APIs")
    return schema


def schema_named(name: str) -> MessageSchema:
    """The schema of an API by Kafka's name of it, as `JoinGroup`.

    Raises:
        UnsupportedVersion: no such API; the message lists the known ones.
    """
    schema = _BY_NAME.get(name)
    if schema is None:
        raise UnsupportedVersion(f"unknown API {name!r}: use one of {', '.join(_BY_NAME)}")
    return schema


@cache
def layout_of(api: ApiKey, version: int, *, response: bool) -> Layout:
    """The fields of the requests or the responses of one version.

    Raises:
        UnsupportedVersion: not one of the group APIs, or Kafka never had the version.
    """
    schema = schema_of(api)
    if not 0 <= version <= schema.newest:
        raise UnsupportedVersion(
            f"{schema.name} has no version {version}: use 0 to {schema.newest}"
        )
    name = f"{schema.name}{'Response' if response else 'Request'}"
    fields = schema.response if response else schema.request
    return struct_layout(name, fields, version, flexible=version >= schema.flexible_since)
