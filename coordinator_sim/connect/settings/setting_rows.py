"""Tables of settings, one a kind in `tables`, as definitions.

A row says what is plain data: the type, the default, what a user interface shows, and the check as
a range, a choice or a name. Elsewhere: the named checks (`checks`), and what concerns several
settings at once (`worker_config`, `connector_config`).

Source: kafka trunk, clients/.../common/config/ConfigDef.java (ConfigKey).
"""

from functools import cache
from importlib.resources import files

import msgspec
from msgspec import UNSET, Struct, UnsetType

from coordinator_sim.connect.settings.checks import CHECKS
from coordinator_sim.connect.settings.config_def import (
    ConfigInput,
    ConfigKey,
    NoDefault,
    Type,
    Validator,
    between,
    one_of,
)


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
