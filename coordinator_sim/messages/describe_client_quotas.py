"""The messages of DescribeClientQuotas.

Written by tools/write_messages.py from schemas/DescribeClientQuotas.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ComponentData(Struct, frozen=True, gc=False):
    """An entry of `components`."""

    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


class DescribeClientQuotasRequest(Struct, frozen=True, gc=False):
    """DescribeClientQuotasRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLIENT_QUOTAS
    components: tuple[ComponentData, ...] = ()
    strict: bool = False


class EntityData(Struct, frozen=True, gc=False):
    """An entry of `entity`."""

    entity_type: str = ""
    entity_name: str | None = ""


class ValueData(Struct, frozen=True, gc=False):
    """An entry of `values`."""

    key: str = ""
    value: float = 0.0


class EntryData(Struct, frozen=True, gc=False):
    """An entry of `entries`."""

    entity: tuple[EntityData, ...] = ()
    values: tuple[ValueData, ...] = ()


class DescribeClientQuotasResponse(Struct, frozen=True, gc=False):
    """DescribeClientQuotasResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLIENT_QUOTAS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    entries: tuple[EntryData, ...] | None = ()
