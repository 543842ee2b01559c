"""Manifests of connector classes: the answers a Java class would give, as data.

One file, in TOML or JSON, describes one class: its name, direction and version, the settings it
defines, how it divides its work into tasks, and what its tasks do. Texts are parsed here; a driver
reads the files.

Source: kafka trunk, connect/api/.../connector/Connector.java (config, taskConfigs, version),
connect/api/.../util/ConnectorUtils.java (groupPartitions).
"""

import tomllib
from collections.abc import Mapping
from enum import Enum, unique
from typing import Literal

import msgspec
from msgspec import Struct

from coordinator_sim.connect.settings.config_def import (
    ConfigDef,
    ConfigInput,
    ConfigKey,
    NoDefault,
    Type,
    Validator,
    at_least,
    non_empty,
    one_of,
    parse_type,
)
from coordinator_sim.errors import ConfigError


class SettingSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One setting of a connector class, as a manifest writes it.

    Args:
        type: A type of Kafka's ConfigDef, in lower case.
        default: Default as text; a setting with neither this nor `optional` is required.
        optional: Whether the setting may be absent; it then has no value by default.
        at_least: Smallest number allowed.
        one_of: Allowed texts; empty for any.
        non_empty: Whether the empty text is refused.
    """

    name: str
    type: Literal["boolean", "string", "int", "short", "long", "double", "list", "password"] = (
        "string"
    )
    default: str | None = None
    optional: bool = False
    at_least: int | None = None
    one_of: tuple[str, ...] = ()
    non_empty: bool = False
    importance: Literal["high", "medium", "low"] = "high"
    documentation: str = ""


@unique
class TaskRule(Enum):
    """Rule by which a connector divides its work.

    `one`: a single task with the connector's settings, whatever `tasks.max` is.
    `copies`: `tasks.max` tasks, each with the connector's settings.
    `share`: the elements of a list setting are divided among at most `tasks.max` tasks.
    """

    ONE = "one"
    COPIES = "copies"
    SHARE = "share"


class TasksSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rule of `taskConfigs`.

    Args:
        rule: The rule that applies.
        of: For `share`: the list setting; each task gets its share under the same name.
        task_class: Java's task class, written into each task's settings as `task.class`; empty for
            the connector's class with Connector replaced by Task.
    """

    rule: TaskRule = TaskRule.ONE
    of: str = ""
    task_class: str = ""


class FailureLaw(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions under which a task, or the connector itself, fails by itself.

    Args:
        at_start: Whether it fails as soon as it is started.
        after_ms: Milliseconds of running before the failure; None for never.
        chance_per_million: Probability, in millionths, that a start leads to that failure.
        trace: Text that the FAILED status shows.
    """

    at_start: bool = False
    after_ms: int | None = None
    chance_per_million: int = 1_000_000
    trace: str = "org.apache.kafka.connect.errors.ConnectException: the manifest asks for a failure"


class WorkSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Work of one task. Durations in milliseconds.

    Args:
        records_per_s: Records that a task moves per second while it runs; 0 for none.
        record_bytes: Size of one record.
        partitions: Source partitions that a task reads, each with offsets of its own.
        start_ms: Time from the start of the task to its first record.
        stop_ms: Time from the order to stop to the end of its last record.
        connector_start_ms: Time that the connector's own start takes.
        connector_stop_ms: Time that the connector's own stop takes.
        failure: When a task fails.
        connector_failure: When the connector itself fails.
    """

    records_per_s: int = 0
    record_bytes: int = 100
    partitions: int = 1
    start_ms: int = 100
    stop_ms: int = 200
    connector_start_ms: int = 50
    connector_stop_ms: int = 50
    failure: FailureLaw | None = None
    connector_failure: FailureLaw | None = None

    def __post_init__(self) -> None:
        """Reject negative or impossible amounts."""
        for name in ("records_per_s", "record_bytes", "start_ms", "stop_ms"):
            if getattr(self, name) < 0:
                raise ConfigError(f"work.{name}={getattr(self, name)} is negative; write 0 or more")


class ConnectorManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One connector class.

    Args:
        class_name: Full name of the class; `class` in the file.
        type: Direction, source or sink.
        settings: Settings beside those common to all connectors; `config` in the file.
        tasks: How the connector divides its work.
        work: Work of its tasks.
        alters_offsets: Whether the class vouches for offsets altered by request.
    """

    class_name: str = msgspec.field(name="class")
    type: Literal["source", "sink"]
    version: str = "undefined"
    settings: tuple[SettingSpec, ...] = msgspec.field(name="config", default=())
    tasks: TasksSpec = TasksSpec()
    work: WorkSpec = WorkSpec()
    alters_offsets: bool = False

    def config_def(self) -> ConfigDef:
        """Return the definitions of the class's own settings.

        Raises:
            ConfigError: a default does not match its type.
        """
        return ConfigDef(_config_key(spec) for spec in self.settings)

    def task_configs(self, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Return the settings of each task, for at most `max_tasks` tasks.

        An empty share gives no task, so the list may be empty.
        """
        task = {**config, "task.class": self._task_class()}
        match self.tasks.rule:
            case TaskRule.ONE:
                return [task]
            case TaskRule.COPIES:
                return [dict(task) for _ in range(max_tasks)]
            case TaskRule.SHARE:
                elements = parse_type(self.tasks.of, config.get(self.tasks.of), Type.LIST)
                shares = group_partitions(
                    elements if isinstance(elements, tuple) else (), max_tasks
                )
                return [{**task, self.tasks.of: ",".join(share)} for share in shares]

    def _task_class(self) -> str:
        if self.tasks.task_class:
            return self.tasks.task_class
        return self.class_name.removesuffix("Connector") + "Task"


def group_partitions(elements: tuple[str, ...], group_count: int) -> list[tuple[str, ...]]:
    """Divide elements into at most so many groups in order; the first groups may be larger by one.

    Source: ConnectorUtils.groupPartitions, as connectors call it with the smaller of both counts.
    """
    count = min(len(elements), group_count)
    groups: list[tuple[str, ...]] = []
    taken = 0
    for index in range(count):
        size = len(elements) // count + (1 if index < len(elements) % count else 0)
        groups.append(elements[taken : taken + size])
        taken += size
    return groups


def parse_manifest(text: str, *, name: str) -> ConnectorManifest:
    """Parse a manifest file: TOML, or JSON when its name ends so.

    Args:
        text: The whole file.
        name: Name of the file, for messages and the choice of the language.

    Raises:
        ConfigError: the text does not parse, or is no valid manifest.
    """
    try:
        if name.endswith(".json"):
            return msgspec.json.decode(text, type=ConnectorManifest)
        manifest = msgspec.convert(tomllib.loads(text), ConnectorManifest)
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError) as error:
        raise ConfigError(f"manifest {name}: {error}") from error
    if manifest.tasks.rule is TaskRule.SHARE and not manifest.tasks.of:
        raise ConfigError(f"manifest {name}: rule share needs `of`, the list setting to divide")
    return manifest


def _config_key(spec: SettingSpec) -> ConfigKey:
    kind = Type(spec.type.upper())
    default: ConfigInput | NoDefault = NoDefault.REQUIRED
    if spec.default is not None:
        default = parse_type(spec.name, spec.default, kind)
    elif spec.optional:
        default = None
    return ConfigKey(
        name=spec.name,
        type=kind,
        default=default,
        validators=_validators(spec),
        importance=spec.importance.upper(),
        documentation=spec.documentation,
        display_name=spec.name,
    )


def _validators(spec: SettingSpec) -> tuple[Validator, ...]:
    validators: list[Validator] = []
    if spec.at_least is not None:
        validators.append(at_least(spec.at_least))
    if spec.one_of:
        validators.append(one_of(*spec.one_of))
    if spec.non_empty:
        validators.append(non_empty)
    return tuple(validators)
