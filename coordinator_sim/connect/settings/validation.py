"""Validation of a connector's configuration, and other questions about installed plugins.

Source: kafka trunk, connect/runtime/.../AbstractHerder.java, validateConnectorConfig,
generateResult, connectorPluginConfig; ConnectorConfig.java, EnrichablePlugin; Worker.java,
connectorTaskConfigs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.exceptions import ConnectException, trace_of
from coordinator_sim.connect.herding.requests import ConnectorOffset, ConnectorType, PluginFailure
from coordinator_sim.connect.plugins.file_stream import SOURCE_CLASS, offsets_error
from coordinator_sim.connect.plugins.registry import Plugin, PluginNotFound, Plugins, PluginType
from coordinator_sim.connect.settings.client_overrides import ALL, OverridePolicy
from coordinator_sim.connect.settings.config_def import (
    ConfigDef,
    ConfigKey,
    ConfigValue,
    NoDefault,
    Properties,
    Type,
    Validator,
    config_text,
    parse_type,
)
from coordinator_sim.connect.settings.config_transformer import (
    ConfigTransformer,
    Provider,
    with_references,
)
from coordinator_sim.connect.settings.connector_config import (
    CONNECTOR_CLASS,
    HEADER_CONVERTER,
    KEY_CONVERTER,
    SINK_CONFIG,
    SOURCE_CONFIG,
    VALUE_CONVERTER,
    check_sink_topics,
    must_extend,
)
from coordinator_sim.errors import CoordinatorSimError, InvariantViolation
from coordinator_sim.kafka.orders.iteration_order import java_hash_order

_CONNECT_EXCEPTION: Final = "org.apache.kafka.connect.errors.ConnectException: "


class NoConnectorClass(CoordinatorSimError):
    """A configuration without `connector.class`; the message is Kafka's."""


class ConfigInfo(Struct, frozen=True, kw_only=True):
    """One setting's definition, None for an unknown setting, and its validation result."""

    definition: dict[str, object] | None
    value: dict[str, object] | None
    errors: tuple[str, ...] = ()


class ConfigInfos(Struct, frozen=True, kw_only=True):
    """Result of validating a whole configuration.

    Args:
        name: The connector class as given.
        configs: Results in the order of definition.
    """

    name: str
    error_count: int
    groups: tuple[str, ...]
    configs: tuple[ConfigInfo, ...]

    def errors(self) -> tuple[str, ...]:
        """All messages, in order."""
        return tuple(error for config in self.configs for error in config.errors)


class InstalledPlugins:
    """The plugins of a worker, as its herder and its REST resources use them.

    Args:
        plugins: Plugins that the scan found.
        overrides: What connectors may override of client settings.
        providers: Providers of values that settings of connectors refer to.
    """

    def __init__(
        self,
        plugins: Plugins,
        overrides: OverridePolicy = ALL,
        providers: Mapping[str, Provider] = MappingProxyType({}),
    ) -> None:
        self.plugins = plugins
        self._transformer = ConfigTransformer(providers)
        self._overrides = overrides
        self._missed: dict[str, None] = {}

    def connector_type(self, config: Mapping[str, str]) -> ConnectorType:
        """Return whether `connector.class` is a source or a sink; UNKNOWN if not installed."""
        return self.plugins.connector_type(config)

    def version(self, config: Mapping[str, str]) -> str | None:
        """Return the version of the connector's class; None when it is not installed."""
        try:
            return self.plugins.connector(config.get(CONNECTOR_CLASS, "")).version
        except PluginNotFound:
            return None

    def validation_errors(self, config: Properties) -> tuple[str, ...] | PluginFailure:
        """Return the errors in a connector's configuration; empty when it may be written.

        A failure means that validation could not begin: the class is not named or not installed.
        """
        try:
            return self.validate(config).errors()
        except (NoConnectorClass, PluginNotFound) as error:
            return PluginFailure(str(error))

    def task_configs(
        self, config: Mapping[str, str], max_tasks: int
    ) -> list[dict[str, str]] | PluginFailure:
        """Return the settings of each task, for at most `max_tasks`, `task.class` included."""
        try:
            manifest = self.plugins.connector(config.get(CONNECTOR_CLASS, "")).manifest
        except PluginNotFound as error:
            return PluginFailure(trace_of(ConnectException(str(error))))
        if manifest is None:
            raise InvariantViolation(f"connector {config} without a manifest")
        configs = manifest.task_configs(self.transformed(config), max_tasks)
        return [with_references(each, config) for each in configs]

    def transformed(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a configuration with the values that it refers to.

        Raises:
            ConfigException: a provider cannot read a path.
        """
        found = self._transformer.transform(config)
        return {name: value for name, value in found.items() if value is not None}

    def alter_offsets(
        self, config: Mapping[str, str], offsets: tuple[ConnectorOffset, ...]
    ) -> bool | PluginFailure:
        """Return whether the class vouches for new offsets; a failure when it refuses them.

        Source: Worker.modifySourceConnectorOffsets.
        """
        manifest = self.plugins.connector(config.get(CONNECTOR_CLASS, "")).manifest
        if manifest is None or manifest.class_name != SOURCE_CLASS:
            return manifest is not None and manifest.alters_offsets
        error = offsets_error(config, offsets)
        return True if error is None else PluginFailure(error)

    def start_failure(self, config: Mapping[str, str]) -> PluginFailure | None:
        """Return why the connector's class cannot be instantiated; None when it can.

        Source: Worker.startConnector, where the missing class is the first thing that fails.
        """
        try:
            self.plugins.connector(config.get(CONNECTOR_CLASS, ""))
        except PluginNotFound as error:
            return PluginFailure(trace_of(ConnectException(str(error))))
        return None

    def validate(self, config: Properties) -> ConfigInfos:
        """Validate every setting of a connector.

        Raises:
            NoConnectorClass: `connector.class` is missing.
            PluginNotFound: the class is not installed.
            ConfigException: a provider cannot read a path.

        DEVIATION: settings of transformations and predicates and topic creation groups are
        accepted unseen.
        """
        config = self._transformer.transform(config)
        name = config.get(CONNECTOR_CLASS)
        if name is None:
            given = ", ".join(f"{key}={'null' if v is None else v}" for key, v in config.items())
            raise NoConnectorClass(f"Connector config {{{given}}} contains no connector type")
        plugin = self._looked_up(name)
        is_sink = plugin.type is PluginType.SINK
        definitions = self._enriched(SINK_CONFIG if is_sink else SOURCE_CONFIG, config)
        found = definitions.validate_all(config, self.plugins.full_name)
        if is_sink:
            check_sink_topics(config, found)
        for key, value in config.items():
            if value is None:
                found.setdefault(key, ConfigValue(key)).errors.append(
                    "Null value can not be supplied as the configuration value."
                )
        own = plugin.config or ConfigDef()
        # QUIRK: the connector's result for a setting replaces Connect's own.
        found.update(own.validate_all(config, self.plugins.full_name))
        keys = {**definitions.keys, **own.keys}
        infos = [_info(None, value) for value in found.values() if value.name not in keys]
        infos += [_info(key, found.get(key.name)) for key in keys.values()]
        groups = dict.fromkeys((*definitions.groups(), *own.groups()))
        infos += [_info(None, each) for each in self._overrides.values(config, is_sink=is_sink)]
        error_count = sum(len(info.errors) for info in infos)
        for setting in (HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER):
            converter = self._converter_infos(setting, config, found)
            infos += converter.configs
            error_count += converter.error_count
            groups.update(dict.fromkeys(converter.groups))
        return ConfigInfos(
            name=name, error_count=error_count, groups=tuple(groups), configs=tuple(infos)
        )

    def _looked_up(self, name: str) -> Plugin:
        """Return the connector of this name.

        QUIRK: a name that was not found is remembered, and from the second lookup on the
        message begins with the class of the exception.

        Source: kafka 4.3, connect/runtime/.../CachedConnectors.java, as seen of 4.3.1.
        """
        try:
            return self.plugins.connector(name)
        except PluginNotFound as error:
            if name in self._missed:
                raise PluginNotFound(f"{_CONNECT_EXCEPTION}{error}") from error
            self._missed[name] = None
            raise

    def config_definition(self, class_or_alias: str) -> tuple[dict[str, object], ...] | None:
        """Return the settings of a plugin, its own before the common ones; None when unknown.

        Source: AbstractHerder.connectorPluginConfig.
        """
        plugin = self.plugins.plugin(class_or_alias)
        if plugin is None:
            return None
        keys = dict((plugin.config or ConfigDef()).keys)
        common = {PluginType.SINK: SINK_CONFIG, PluginType.SOURCE: SOURCE_CONFIG}.get(plugin.type)
        for key in common.keys.values() if common is not None else ():
            keys.setdefault(key.name, key)
        return tuple(key_info(key) for key in keys.values())

    def _enriched(self, definitions: ConfigDef, config: Properties) -> ConfigDef:
        """Return the common definitions with converter checks and transformation types added."""
        more: list[ConfigKey] = []
        for key in definitions.keys.values():
            validator = self._converter_validator(key.name)
            if validator is not None:
                more.append(_with_validator(key, validator))
        for setting, kind in (
            ("transforms", PluginType.TRANSFORMATION),
            ("predicates", PluginType.PREDICATE),
        ):
            aliases = parse_type(setting, config.get(setting), Type.LIST)
            more.extend(
                self._type_key(setting, alias, kind)
                for alias in dict.fromkeys(aliases if isinstance(aliases, tuple) else ())
            )
        return definitions.with_keys(more)

    def _type_key(self, setting: str, alias: str, kind: PluginType) -> ConfigKey:
        accepted = self.plugins.of_type(kind)
        what = kind.value
        return ConfigKey(
            name=f"{setting}.{alias}.type",
            type=Type.CLASS,
            validators=(self._must_be(kind),),
            documentation=f"Class for the '{alias}' {what}.",
            group=f"{setting.capitalize()}: {alias}",
            order_in_group=0,
            width="LONG",
            display_name=f"{kind.base_name} type for {alias}",
            recommended=tuple(plugin.class_name for plugin in accepted),
        )

    def _converter_validator(self, setting: str) -> Validator | None:
        if setting == HEADER_CONVERTER:
            return self._must_be(PluginType.HEADER_CONVERTER)
        if setting in (KEY_CONVERTER, VALUE_CONVERTER):
            return self._must_be(PluginType.CONVERTER)
        return None

    def _must_be(self, kind: PluginType) -> Validator:
        accepted = frozenset(plugin.class_name for plugin in self.plugins.of_type(kind))
        return must_extend(kind.base_name, is_interface=True, accepted=accepted)

    def _converter_infos(
        self, setting: str, config: Properties, found: Mapping[str, ConfigValue]
    ) -> ConfigInfos:
        """Return the converter's own settings, when the connector names a usable one."""
        plugin = self._named_converter(setting, config, found)
        if plugin is None or plugin.config is None:
            return ConfigInfos(name="", error_count=0, groups=(), configs=())
        prefix = f"{setting}."
        own: dict[str, str | None] = {
            key.removeprefix(prefix): value
            for key, value in config.items()
            if key.startswith(prefix)
        }
        own.setdefault("converter.type", setting.split(".", maxsplit=1)[0])
        values = plugin.config.validate_all(own, self.plugins.full_name)
        keys = plugin.config.keys
        names = java_hash_order(values)
        infos = tuple(_info(keys[name], values[name], prefix) for name in names)
        groups = (keys[name].group for name in names)
        return ConfigInfos(
            name="",
            # QUIRK: for a converter the invalid settings are counted, not the messages.
            error_count=sum(1 for info in infos if info.errors),
            groups=tuple(dict.fromkeys(group for group in groups if group is not None)),
            configs=infos,
        )

    def _named_converter(
        self, setting: str, config: Properties, found: Mapping[str, ConfigValue]
    ) -> Plugin | None:
        name = config.get(setting)
        return None if name is None or found[setting].errors else self.plugins.plugin(name)


def invalid_config_message(errors: tuple[str, ...]) -> str:
    """Return the answer to a refused configuration. Source: AbstractHerder.maybeAddConfigErrors."""
    lines = "".join(f"\n{error}" for error in errors)
    return (
        "Connector configuration is invalid and contains the following "
        f"{len(errors)} error(s):{lines}\nYou can also find the above list of errors at the "
        "endpoint `/connector-plugins/{connectorType}/config/validate`"
    )


def key_info(key: ConfigKey, prefix: str = "") -> dict[str, object]:
    """Return a definition as JSON shows it. Source: AbstractHerder.convertConfigKey."""
    required = isinstance(key.default, NoDefault)
    return {
        "name": prefix + key.name,
        "type": key.type.value,
        "required": required,
        "default_value": None if isinstance(key.default, NoDefault) else config_text(key.default),
        "importance": key.importance,
        "documentation": key.documentation,
        "group": key.group,
        "order_in_group": key.order_in_group,
        "width": key.width,
        "display_name": key.display_name,
        "dependents": [],
    }


def _info(key: ConfigKey | None, value: ConfigValue | None, prefix: str = "") -> ConfigInfo:
    shown: dict[str, object] | None = None
    if value is not None:
        shown = {
            "name": prefix + value.name,
            "value": config_text(value.value),
            "recommended_values": list(value.recommended),
            "errors": list(value.errors),
            "visible": True,
        }
    return ConfigInfo(
        definition=None if key is None else key_info(key, prefix),
        value=shown,
        errors=tuple(value.errors) if value is not None else (),
    )


def _with_validator(key: ConfigKey, validator: Validator) -> ConfigKey:
    return ConfigKey(
        name=key.name,
        type=key.type,
        default=key.default,
        validators=(validator,),
        importance=key.importance,
        documentation=key.documentation,
        group=key.group,
        order_in_group=key.order_in_group,
        width=key.width,
        display_name=key.display_name,
    )
