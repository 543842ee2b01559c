"""Looks for connector classes: manifests in the folders of `plugin.path`, and entry points.

As with Java's plugin path, every folder in a listed folder is a location of its own, and so is a
manifest directly in a listed folder. Entry points of installed packages stand for the class path:
their classes are not isolated. Unreadable files are left out and reported, and do not keep a worker
from starting.

Source: kafka trunk, connect/runtime/.../isolation/PluginUtils.java, pluginLocations, pluginUrls;
PluginScanner.java.
"""

from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.plugins.manifests import ConnectorManifest, parse_manifest
from coordinator_sim.connect.plugins.registry import CLASSPATH, Plugin
from coordinator_sim.connect.plugins.standard_plugins import connector_plugin, file_stream_plugins
from coordinator_sim.errors import ConfigError

ENTRY_POINT_GROUP: Final = "coordinator_sim.connectors"
"""Group of entry points that name a `ConnectorManifest`, or a sequence of several."""
_SUFFIXES: Final = (".toml", ".json")


class Scan(Struct, frozen=True):
    """Result of a scan.

    Args:
        plugins: Plugins in the order found; FileStream's first.
        problems: One line for each file, folder or entry point that was left out.
    """

    plugins: tuple[Plugin, ...]
    problems: tuple[str, ...]


def scan_plugins(plugin_path: Sequence[str], *, with_entry_points: bool = True) -> Scan:
    """Look for connectors.

    Args:
        plugin_path: Folders, as `plugin.path` lists them.
        with_entry_points: Whether to load entry points of installed packages too.
    """
    plugins = list(file_stream_plugins())
    problems: list[str] = []
    for listed in plugin_path:
        for location, file in _manifest_files(Path(listed), problems):
            _read(file, location, plugins, problems)
    if with_entry_points:
        for entry_point in entry_points(group=ENTRY_POINT_GROUP):
            _load(entry_point, plugins, problems)
    return Scan(tuple(plugins), tuple(problems))


def _manifest_files(listed: Path, problems: list[str]) -> Iterable[tuple[str, Path]]:
    """Yield location and file of every manifest below a listed folder, by name."""
    if not listed.is_dir():
        problems.append(f"plugin path {listed} is no folder")
        return
    for entry in sorted(listed.resolve().iterdir()):
        if entry.is_dir():
            for file in sorted(entry.rglob("*")):
                if file.suffix in _SUFFIXES:
                    yield f"file:{entry.as_posix()}/", file
        elif entry.suffix in _SUFFIXES:
            yield f"file:{entry.as_posix()}", entry


def _read(file: Path, location: str, plugins: list[Plugin], problems: list[str]) -> None:
    try:
        manifest = parse_manifest(file.read_text(encoding="utf-8"), name=file.name)
        plugins.append(connector_plugin(manifest, location=location))
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        problems.append(f"{file}: {error}")


def _load(entry_point: EntryPoint, plugins: list[Plugin], problems: list[str]) -> None:
    try:
        found: object = entry_point.load()
    except (ImportError, AttributeError) as error:
        problems.append(f"entry point {entry_point.name}: {error}")
        return
    manifests = found if isinstance(found, list | tuple) else [found]
    for manifest in manifests:
        if isinstance(manifest, ConnectorManifest):
            plugins.append(connector_plugin(manifest, location=CLASSPATH))
        else:
            problems.append(f"entry point {entry_point.name}: {manifest!r} is no manifest")
