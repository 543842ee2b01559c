"""The messages of AlterClientQuotas.

Written by tools/write_messages.py from schemas/AlterClientQuotas.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class EntityData(Struct, frozen=True, gc=False):
    """An entry of `entity`."""

    entity_type: str = ""
    entity_name: str | None = ""


class OpData(Struct, frozen=True, gc=False):
    """An entry of `ops`."""

    key: str = ""
    value: float = 0.0
    remove: bool = False


class EntryData(Struct, frozen=True, gc=False):
    """An entry of `entries`."""

    entity: tuple[EntityData, ...] = ()
    ops: tuple[OpData, ...] = ()


class AlterClientQuotasRequest(Struct, frozen=True, gc=False):
    """AlterClientQuotasRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CLIENT_QUOTAS
    entries: tuple[EntryData, ...] = ()
    validate_only: bool = False


class AlterClientQuotasResponseEntityData(Struct, frozen=True, gc=False):
    """An entry of `entity`."""

    entity_type: str = ""
    entity_name: str | None = ""


class AlterClientQuotasResponseEntryData(Struct, frozen=True, gc=False):
    """An entry of `entries`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    entity: tuple[AlterClientQuotasResponseEntityData, ...] = ()


class AlterClientQuotasResponse(Struct, frozen=True, gc=False):
    """AlterClientQuotasResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CLIENT_QUOTAS
    throttle_time_ms: int = 0
    entries: tuple[AlterClientQuotasResponseEntryData, ...] = ()
