"""The plugins installed on a worker: class of each name, location and version.

A plugin location stands for a folder of `plugin.path`; classes of different locations do not see
one another. Connectors bring a manifest, other plugins only a name and settings. The registry is
plain data: a driver scans folders and entry points.

The order of plugin versions, as Maven compares artefact versions.

Connect uses this order to decide which of two copies of a class it runs.

Source: kafka trunk, connect/runtime/.../isolation/Plugins.java, PluginUtils.java, PluginDesc.java,
DelegatingClassLoader.java; maven-artifact,
org/apache/maven/artifact/versioning/ComparableVersion.java.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.herding.requests import ConnectorType
from coordinator_sim.connect.plugins.manifests import ConnectorManifest
from coordinator_sim.connect.settings.config_def import ConfigDef
from coordinator_sim.errors import CoordinatorSimError

_WORD: Final = re.compile(r"(\d+|[^\d.\-]+)|([.\-])")
_QUALIFIERS: Final = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
"""Known qualifiers in order; the empty one is the release itself."""
_SAME: Final = {"ga": "", "final": "", "release": "", "cr": "rc"}
_SHORT: Final = {"a": "alpha", "b": "beta", "m": "milestone"}
"""Abbreviations, which count only where a number follows at once, as in `1.0-b2`."""
_RELEASE: Final = _QUALIFIERS.index("")

Part = tuple[int, int, str]
"""Kind (0 qualifier, 1 group begun by a hyphen, 2 number), rank, text."""


def version_key(version: str) -> tuple[Part, ...]:
    """Return a key that orders versions from oldest to newest.

    Numbers compare as numbers, `1.0` equals `1`, a qualifier such as `rc` stands before its
    release, an unknown one after all known. Every key ends with an end mark.
    """
    parts: list[Part] = []
    words = _words(version.lower())
    for index, word in enumerate(words):
        number_follows = index + 1 < len(words) and words[index + 1].isdigit()
        if word.isdigit():
            parts.append((2, int(word), ""))
        elif word == "-":
            _trim(parts)
            if number_follows:
                parts.append((1, 0, ""))
        elif word != ".":
            _trim(parts)
            parts.append(_qualifier(_SHORT.get(word, word) if number_follows else word))
    _trim(parts)
    return (*parts, (0, _RELEASE, ""))


def _words(version: str) -> list[str]:
    return [match.group(0) for match in _WORD.finditer(version)]


def _qualifier(word: str) -> Part:
    text = _SAME.get(word, word)
    if text in _QUALIFIERS:
        return (0, _QUALIFIERS.index(text), "")
    return (0, len(_QUALIFIERS), text)


def _trim(parts: list[Part]) -> None:
    """Remove parts that do not affect the order: zeros, and names of the release."""
    while parts and parts[-1] in {(2, 0, ""), (0, _RELEASE, "")}:
        parts.pop()


CLASSPATH: Final = "classpath"
"""Location of plugins that are not isolated."""


@unique
class PluginType(Enum):
    """Kinds of plugins, in the order Java declares them."""

    SOURCE = "source"
    SINK = "sink"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"

    @property
    def base_name(self) -> str:
        """Simple name of the class or interface that plugins of this kind extend."""
        return _BASE_NAMES[self]


_BASE_NAMES: Final = {
    PluginType.SOURCE: "Connector",
    PluginType.SINK: "Connector",
    PluginType.CONVERTER: "Converter",
    PluginType.HEADER_CONVERTER: "HeaderConverter",
    PluginType.TRANSFORMATION: "Transformation",
    PluginType.PREDICATE: "Predicate",
}
_TYPE_RANKS: Final = {kind: rank for rank, kind in enumerate(PluginType)}


class PluginNotFound(CoordinatorSimError):
    """The name matches no installed connector, or several; the message is Kafka's."""


class Plugin(Struct, frozen=True, kw_only=True):
    """One plugin class at one location.

    Args:
        class_name: Full name, such as `org.apache.kafka.connect.file.FileStreamSourceConnector`.
        version: Version of the plugin; an empty one reads as `undefined`.
        location: Where the plugin was found; `classpath` when not isolated.
        config: Definitions of its settings.
        manifest: What its tasks do; only connectors have one.
    """

    class_name: str
    type: PluginType
    version: str = "undefined"
    location: str = CLASSPATH
    config: ConfigDef | None = None
    manifest: ConnectorManifest | None = None

    @property
    def simple_name(self) -> str:
        """Class name without its package and its outer class."""
        return self.class_name.rsplit(".", 1)[-1].rsplit("$", 1)[-1]

    @property
    def pruned_name(self) -> str:
        """Simple name without the kind of plugin at its end, such as `FileStreamSource`.

        Source: PluginUtils.prunePluginName.
        """
        position = self.simple_name.rfind(self.type.base_name)
        return self.simple_name[:position] if position > 0 else self.simple_name

    @property
    def is_isolated(self) -> bool:
        """Whether the plugin has a location of its own."""
        return self.location != CLASSPATH

    def sort_key(self) -> tuple[object, ...]:
        """Return a key that orders by class, then oldest version first, then not isolated first.

        Source: PluginDesc.compareTo.
        """
        rank = _TYPE_RANKS[self.type]
        return (
            self.class_name,
            version_key(self.version),
            self.is_isolated,
            self.location,
            rank,
        )

    def java_text(self) -> str:
        """Return the plugin as an error message lists it. Source: PluginDesc.toString."""
        kind = self.type.value
        return (
            f"PluginDesc{{klass=class {self.class_name}, name='{self.class_name}', "
            f"version='{self.version}', encodedVersion={self.version}, type={kind}, "
            f"typeName='{kind}', location='{self.location}'}}"
        )


class Plugins:
    """All plugins of one worker.

    Args:
        found: Plugins that the scan found, in any order; a class may be at several locations.
    """

    def __init__(self, found: Iterable[Plugin]) -> None:
        self.found: tuple[Plugin, ...] = tuple(sorted(found, key=Plugin.sort_key))
        self._by_class: dict[str, Plugin] = {}
        for plugin in self.found:
            # The last in order is used: the newest, and of equal versions the isolated one.
            self._by_class[plugin.class_name] = plugin
        self._aliases = _aliases(self.found)

    def aliases(self) -> Mapping[str, str]:
        """Alias -> full class name; ambiguous aliases are absent."""
        return self._aliases

    def of_type(self, *kinds: PluginType) -> tuple[Plugin, ...]:
        """Return the plugins of some kinds, ordered, with every location of a class."""
        return tuple(plugin for plugin in self.found if plugin.type in kinds)

    def full_name(self, class_or_alias: str) -> str | None:
        """Return the full class name for a class or alias; None when it is not installed."""
        name = self._aliases.get(class_or_alias, class_or_alias)
        return name if name in self._by_class else None

    def plugin(self, class_or_alias: str) -> Plugin | None:
        """Return the plugin for a class or alias, of any kind; None when it is not installed."""
        name = self.full_name(class_or_alias)
        return None if name is None else self._by_class[name]

    def connector(self, class_or_alias: str) -> Plugin:
        """Return the connector for a class or alias.

        Raises:
            PluginNotFound: no connector, or several, have that name; the message is Kafka's.

        Source: Plugins.connectorClass.
        """
        plugin = self.plugin(class_or_alias)
        if plugin is not None and plugin.type in (PluginType.SOURCE, PluginType.SINK):
            return plugin
        connectors = self.of_type(PluginType.SOURCE, PluginType.SINK)
        wanted = (class_or_alias, f"{class_or_alias}Connector")
        matches = [each for each in connectors if each.simple_name in wanted]
        listed = ", ".join(each.java_text() for each in connectors)
        if not matches:
            raise PluginNotFound(
                "Failed to find any class that implements Connector and which name matches "
                f"{class_or_alias}, available connectors are: {listed}"
            )
        if len(matches) > 1:
            raise PluginNotFound(
                f"More than one connector matches alias {class_or_alias}. Please use full package "
                f"and class name instead. Classes found: {listed}"
            )
        return matches[0]

    def connector_type(self, config: Mapping[str, str | None]) -> ConnectorType:
        """Return the direction of a configuration's connector; UNKNOWN when it is not installed.

        Source: AbstractHerder.connectorType.
        """
        name = config.get("connector.class")
        if name is None:
            return ConnectorType.UNKNOWN
        try:
            return ConnectorType(self.connector(name).type.value)
        except PluginNotFound:
            return ConnectorType.UNKNOWN


def _aliases(found: Iterable[Plugin]) -> dict[str, str]:
    """Return unambiguous simple and pruned names. Source: PluginUtils.computeAliases."""
    classes: dict[str, dict[str, None]] = {}
    for plugin in found:
        for alias in (plugin.simple_name, plugin.pruned_name):
            classes.setdefault(alias, {})[plugin.class_name] = None
    return {alias: next(iter(names)) for alias, names in classes.items() if len(names) == 1}
