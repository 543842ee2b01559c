"""The existing messages, by API, and the modules of their structs."""

from functools import cache
from typing import ClassVar, Final, Protocol

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.schema import (
    Layout,
    Message,
    api_schema,
    layout_of_message,
    message_of,
    schema_names,
    snake_case,
)


class SpokenMessage(Protocol):
    """A request or a response of an API, in our struct."""

    api_key: ClassVar[ApiKey]


def _camel(api: ApiKey) -> str:
    return "".join(part.capitalize() for part in api.name.split("_"))


API_NAMES: Final[dict[ApiKey, str]] = {
    api: _camel(api) for api in ApiKey if _camel(api) in set(schema_names())
}
"""Kafka's name of every supported API."""
_APIS: Final = {name: api for api, name in API_NAMES.items()}


SHARE_GROUP_APIS: Final = tuple(api for api in ApiKey if "SHARE" in api.name)
"""The APIs of share groups, their partitions and their state."""
DRAFTED_APIS: Final = tuple(api for api in ApiKey if "SHARE" in api.name or "STREAMS" in api.name)
"""The APIs of share and streams groups: releases up to 3.9 had drafts of some, or none of them."""
CONTROL_APIS: Final = (
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
)
"""The APIs between the brokers and a controller of ZooKeeper's days; 4.0 has none of them."""


def name_of(api: ApiKey) -> str:
    """Kafka's name of an API, for example `JoinGroup`.

    Raises:
        UnsupportedVersion: the API is not supported.
    """
    name = API_NAMES.get(api)
    if name is None:
        raise UnsupportedVersion(f"{api.name} is not spoken here")
    return name


def api_named(name: str) -> ApiKey:
    """The API of Kafka's name, for example `JoinGroup`.

    Raises:
        UnsupportedVersion: no such API; the message lists the known ones.
    """
    api = _APIS.get(name)
    if api is None:
        raise UnsupportedVersion(f"unknown API {name!r}: use one of {', '.join(_APIS)}")
    return api


def newest_version(api: ApiKey) -> int:
    """The newest version of an API.

    Raises:
        UnsupportedVersion: the API is not supported.
    """
    newest: int = api_schema(name_of(api))["newest"]
    return newest


def oldest_version(api: ApiKey) -> int:
    """The oldest version of an API: 0, but for those whose first versions were drafts.

    Raises:
        UnsupportedVersion: the API is not supported.
    """
    oldest: int = api_schema(name_of(api)).get("oldest", 0)
    return oldest


def structs_module(name: str) -> str:
    """The module of the structs of a recorded schema: its API's, or that of its records' family."""
    return f"coordinator_sim.messages.{api_schema(name).get('structs', snake_case(name))}"


@cache
def message_of_api(api: ApiKey, *, response: bool) -> Message:
    """The request or response message of an API, over all versions.

    Raises:
        UnsupportedVersion: the API is not supported.
    """
    return message_of(name_of(api), "response" if response else "request")


@cache
def layout_of(api: ApiKey, version: int, *, response: bool) -> Layout:
    """The fields of the request or the response in one version.

    Raises:
        UnsupportedVersion: the API is not supported, or Kafka never had the version.
    """
    message = message_of_api(api, response=response)
    oldest = oldest_version(api)
    if not oldest <= version <= message.newest:
        raise UnsupportedVersion(
            f"{name_of(api)} has no version {version}: use {oldest} to {message.newest}"
        )
    return layout_of_message(message, version)
