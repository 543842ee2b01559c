"""Tables of settings, one a kind in `tables`, as definitions.

A row says what is plain data: the type, the default, what a user interface shows, and the check as
a range, a choice or a name. The named checks are below; constraints between settings are in
`worker_config` and `connector_config`.

Source: kafka trunk, clients/.../common/config/ConfigDef.java (ConfigKey);
connect/runtime/.../TopicCreationConfig.java, distributed/DistributedConfig.java,
rest/RestServerConfig.java, SourceConnectorConfig.java.
"""

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.connect.rest.filters import header_rules
from coordinator_sim.connect.rest.signatures import MAC_ALGORITHMS
from coordinator_sim.connect.settings.config_def import (
    ConfigInput,
    ConfigKey,
    NoDefault,
    Type,
    Validator,
    at_least,
    between,
    invalid,
    non_empty,
    one_of,
    plain_name,
    regex,
    unique_aliases,
)
from coordinator_sim.errors import ConfigError

_BROKER_DEFAULT: Final = -1
_URLS: Final = "ex: http://localhost:8080,https://localhost:8443."


def _positive_or_default(what: str) -> Validator:
    def validate(name: str, value: ConfigInput) -> str | None:
        if isinstance(value, int) and (value >= 1 or value == _BROKER_DEFAULT):
            return None
        return invalid(name, value, f"{what}, or -1 to use the broker's default")

    return validate


def _at_least_zero_or_null(name: str, value: ConfigInput) -> str | None:
    return None if value is None else at_least(0)(name, value)


def _connect_protocol(name: str, value: ConfigInput) -> str | None:
    modes = [mode.name for mode in ConnectProtocolCompatibility]
    if isinstance(value, str) and value.upper() in modes:
        return None
    return invalid(name, value, "Invalid Connect protocol compatibility")


def _mac_algorithm(name: str, value: ConfigInput) -> str | None:
    if value in MAC_ALGORITHMS:
        return None
    return invalid(
        name,
        value,
        "the algorithm is not supported by this JVM; the supported algorithms are: "
        f"[{', '.join(MAC_ALGORITHMS)}]",
    )


def _mac_algorithms(name: str, value: ConfigInput) -> str | None:
    if not isinstance(value, tuple) or not value:
        return invalid(
            name, value, "At least one signature verification algorithm must be provided"
        )
    return next((e for e in (_mac_algorithm(name, each) for each in value) if e is not None), None)


def _listeners(name: str, value: ConfigInput) -> str | None:  # noqa: ARG001 - Kafka's message does not name the setting
    if not isinstance(value, tuple) or not value:
        return f"Invalid value for listeners, at least one URL is expected, {_URLS}"
    if any(not item.strip() for item in value):
        return "Empty URL found when parsing listeners list."
    return None


def _admin_listeners(name: str, value: ConfigInput) -> str | None:  # noqa: ARG001 - as above
    if isinstance(value, tuple) and any(not item.strip() for item in value):
        return "Empty URL found when parsing admin.listeners list."
    return None


def _response_headers(name: str, value: ConfigInput) -> str | None:  # noqa: ARG001 - as above
    try:
        header_rules(str(value))
    except ConfigError as error:
        return str(error)
    return None


CHECKS: Final[dict[str, Validator]] = {
    "admin_listeners": _admin_listeners,
    "at_least_zero_or_null": _at_least_zero_or_null,
    "connect_protocol": _connect_protocol,
    "listeners": _listeners,
    "mac_algorithm": _mac_algorithm,
    "mac_algorithms": _mac_algorithms,
    "non_empty": non_empty,
    "partitions": _positive_or_default("Number of partitions must be positive"),
    "plain_name": plain_name,
    "regex": regex,
    "response_headers": _response_headers,
    "replication_factor": _positive_or_default(
        "Replication factor must be positive and not larger than the number of brokers in the "
        "Kafka cluster"
    ),
    "unique_aliases": unique_aliases,
}


class SettingRow(
    Struct,
    frozen=True,
    rename="camel",
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """One setting.

    Args:
        default: Its parsed value; null is Java's null, and absent means that the setting is needed.
        group: Group in a user interface; None for none.
        order_in_group: Position in the group; -1 for last.
        at_least: Smallest number; null is then refused too.
        at_most: Largest number, where there is a smallest.
        one_of: Texts to choose from; none for any.
        ignores_case: Of these texts, which are then in capitals.
        check: Name of what else must hold.
    """

    name: str
    type: Type
    default: ConfigInput | UnsetType = UNSET
    at_least: int | None = None
    at_most: int | None = None
    one_of: tuple[str, ...] = ()
    ignores_case: bool = False
    check: str | None = None
    importance: str = "HIGH"
    group: str | None = None
    order_in_group: int = -1
    width: str = "NONE"
    display_name: str = ""
    documentation: str = ""


@cache
def keys_in(table: str) -> tuple[ConfigKey, ...]:
    """Definitions of a table's settings, in its order.

    Args:
        table: worker, connector, source or sink.
    """
    path = files("coordinator_sim.connect.settings").joinpath(f"tables/{table}.jsonl")
    rows = msgspec.json.Decoder(SettingRow).decode_lines(path.read_bytes())
    return tuple(_key(row) for row in rows)


def _key(row: SettingRow) -> ConfigKey:
    return ConfigKey(
        name=row.name,
        type=row.type,
        default=NoDefault.REQUIRED if isinstance(row.default, UnsetType) else row.default,
        validators=_validators(row),
        importance=row.importance,
        documentation=row.documentation,
        group=row.group,
        order_in_group=row.order_in_group,
        width=row.width,
        display_name=row.display_name,
    )


def _validators(row: SettingRow) -> tuple[Validator, ...]:
    validators: list[Validator] = []
    if row.at_least is not None:
        validators.append(between(row.at_least, row.at_most))
    if row.one_of:
        validators.append(one_of(*row.one_of, ignore_case=row.ignores_case))
    if row.check is not None:
        validators.append(CHECKS[row.check])
    return tuple(validators)
