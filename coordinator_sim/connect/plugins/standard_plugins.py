"""The plugins that every Connect worker has: converters, transformations, predicates, FileStream.

Settings of converters are known, so that they are validated; of transformations and predicates only
names are known. No data passes through any of them here.

Source: kafka trunk, connect/json/.../JsonConverterConfig.java, connect/api/.../storage/, and
connect/transforms; the list is that of a worker of 4.3.1.
"""

from typing import Final

from coordinator_sim.connect.plugins.file_stream import sink_manifest, source_manifest
from coordinator_sim.connect.plugins.manifests import ConnectorManifest
from coordinator_sim.connect.plugins.registry import CLASSPATH, Plugin, PluginType
from coordinator_sim.connect.settings.config_def import ConfigDef, ConfigKey, Type, one_of

SHOWN_VERSION: Final = "4.3.1"
"""Version that a worker shows for itself and for the plugins that come with it."""
SHOWN_COMMIT: Final = "26b251a451ce941d"
"""Commit of that release's source, as `GET /` shows it."""

_PACKAGE: Final = "org.apache.kafka.connect."
_CONVERTER_TYPE: Final = ConfigKey(
    name="converter.type",
    type=Type.STRING,
    validators=(one_of("key", "value", "header"),),
    importance="LOW",
    documentation="What is converted.",
    display_name="converter.type",
)
_ENCODING: Final = ConfigKey(
    name="converter.encoding",
    type=Type.STRING,
    default="UTF-8",
    documentation="The character set.",
    width="MEDIUM",
    display_name="Encoding",
)
_NUMBER_CONFIG: Final = ConfigDef((_CONVERTER_TYPE,))
_STRING_CONFIG: Final = ConfigDef((_CONVERTER_TYPE, _ENCODING))
_JSON_CONFIG: Final = ConfigDef(
    (
        _CONVERTER_TYPE,
        ConfigKey(
            name="schemas.enable",
            type=Type.BOOLEAN,
            default=True,
            documentation="Whether each record carries its schema.",
            group="Schemas",
            order_in_group=0,
            width="MEDIUM",
            display_name="Enable Schemas",
        ),
        ConfigKey(
            name="schemas.cache.size",
            type=Type.INT,
            default=1000,
            documentation="Most schemas kept.",
            group="Schemas",
            order_in_group=1,
            width="MEDIUM",
            display_name="Schema Cache Size",
        ),
        ConfigKey(
            name="decimal.format",
            type=Type.STRING,
            default="BASE64",
            validators=(one_of("BASE64", "NUMERIC", ignore_case=True),),
            importance="LOW",
            documentation="How decimals are written.",
            group="Serialization",
            order_in_group=0,
            width="MEDIUM",
            display_name="Decimal Format",
        ),
        ConfigKey(
            name="replace.null.with.default",
            type=Type.BOOLEAN,
            default=True,
            importance="LOW",
            documentation="Whether a null field takes the default of its schema.",
            group="Serialization",
            order_in_group=1,
            width="MEDIUM",
            display_name="Replace null with default",
        ),
    )
)
_CONVERTERS: Final = {
    **{
        f"{_PACKAGE}converters.{kind}Converter": _NUMBER_CONFIG
        for kind in ("Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Short")
    },
    f"{_PACKAGE}json.JsonConverter": _JSON_CONFIG,
    f"{_PACKAGE}storage.StringConverter": _STRING_CONFIG,
}
_SIMPLE_HEADERS: Final = f"{_PACKAGE}storage.SimpleHeaderConverter"
_ON_KEY_AND_VALUE: Final = (
    "Cast",
    "ExtractField",
    "Flatten",
    "HeaderFrom",
    "HoistField",
    "InsertField",
    "MaskField",
    "ReplaceField",
    "SetSchemaMetadata",
    "TimestampConverter",
)
_ON_RECORDS: Final = (
    "DropHeaders",
    "Filter",
    "InsertHeader",
    "RegexRouter",
    "TimestampRouter",
    "ValueToKey",
)
_PREDICATES: Final = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")


def standard_plugins(version: str = SHOWN_VERSION) -> tuple[Plugin, ...]:
    """Return the plugins found besides `plugin.path`; they are not isolated."""
    transforms = [
        *(f"{name}${part}" for name in _ON_KEY_AND_VALUE for part in ("Key", "Value")),
        *_ON_RECORDS,
    ]
    header_converters = {**_CONVERTERS, _SIMPLE_HEADERS: ConfigDef()}
    return (
        *_plugins(PluginType.CONVERTER, _CONVERTERS, version),
        *_plugins(PluginType.HEADER_CONVERTER, header_converters, version),
        *_plugins(
            PluginType.TRANSFORMATION,
            {f"{_PACKAGE}transforms.{name}": ConfigDef() for name in transforms},
            version,
        ),
        *_plugins(
            PluginType.PREDICATE,
            {f"{_PACKAGE}transforms.predicates.{name}": ConfigDef() for name in _PREDICATES},
            version,
        ),
    )


def file_stream_plugins(
    version: str = SHOWN_VERSION, *, location: str = CLASSPATH
) -> tuple[Plugin, ...]:
    """Return FileStreamSource and FileStreamSink."""
    return tuple(
        connector_plugin(manifest, location=location)
        for manifest in (source_manifest(version), sink_manifest(version))
    )


def connector_plugin(manifest: ConnectorManifest, *, location: str) -> Plugin:
    """Return the plugin that a manifest describes, at the location where it was found."""
    return Plugin(
        class_name=manifest.class_name,
        type=PluginType(manifest.type),
        version=manifest.version,
        location=location,
        config=manifest.config_def(),
        manifest=manifest,
    )


def _plugins(kind: PluginType, configs: dict[str, ConfigDef], version: str) -> tuple[Plugin, ...]:
    return tuple(
        Plugin(class_name=name, type=kind, version=version, config=config)
        for name, config in configs.items()
    )
