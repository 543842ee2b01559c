"""Manifests are found in the folders of the plugin path, and what is broken is told of."""

import sys
from pathlib import Path

import pytest

from coordinator_sim.connect.plugins.registry import Plugins
from coordinator_sim.live.plugin_path import scan_plugins

MANIFEST = 'class = "org.example.{name}Connector"\ntype = "{type}"\nversion = "{version}"\n'


def manifest(name: str, *, kind: str = "source", version: str = "1.0") -> str:
    """The text of a manifest."""
    return MANIFEST.format(name=name, type=kind, version=version)


def test_folders_are_locations_and_so_are_single_manifests(tmp_path: Path) -> None:
    """Files anywhere below a folder belong to it; names that are no manifests are passed over."""
    deep = tmp_path / "tables" / "v2"
    deep.mkdir(parents=True)
    (deep / "table.toml").write_text(manifest("Table"))
    (deep / "README.txt").write_text("no manifest")
    (tmp_path / "single.json").write_text('{"class": "org.example.OneConnector", "type": "sink"}')
    scan = scan_plugins([str(tmp_path)], with_entry_points=False)
    places = {plugin.simple_name: plugin.location for plugin in scan.plugins}
    assert scan.problems == ()
    assert places == {
        "FileStreamSourceConnector": "classpath",
        "FileStreamSinkConnector": "classpath",
        "TableConnector": f"file:{tmp_path.as_posix()}/tables/",
        "OneConnector": f"file:{tmp_path.as_posix()}/single.json",
    }


def test_of_two_folders_with_one_class_the_newer_is_run(tmp_path: Path) -> None:
    """Both are found; the registry decides."""
    for folder, version in (("a", "1.10"), ("b", "1.9")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.toml").write_text(manifest("Table", version=version))
    scan = scan_plugins([str(tmp_path)], with_entry_points=False)
    chosen = Plugins(scan.plugins).connector("Table")
    assert (chosen.version, chosen.location) == ("1.10", f"file:{tmp_path.as_posix()}/a/")


def test_what_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    """A broken manifest and a missing folder cost one line each, the rest is found."""
    (tmp_path / "bad.toml").write_text("class = ")
    (tmp_path / "good.toml").write_text(manifest("Good", kind="sink"))
    gone = tmp_path / "gone"
    scan = scan_plugins([str(gone), str(tmp_path)], with_entry_points=False)
    assert [plugin.simple_name for plugin in scan.plugins][2:] == ["GoodConnector"]
    assert scan.problems[0] == f"plugin path {gone} is no folder"
    assert scan.problems[1].startswith(f"{tmp_path.resolve() / 'bad.toml'}: manifest bad.toml: ")


def test_entry_points_of_installed_packages_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package offers one manifest or several; what is none, or cannot be loaded, is told of."""
    info = tmp_path / "pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[coordinator_sim.connectors]\ngood = manifests_of_pack:FOUND\n"
        "gone = manifests_of_pack:GONE\nodd = manifests_of_pack:ODD\n"
    )
    (tmp_path / "manifests_of_pack.py").write_text(
        "from coordinator_sim.connect.plugins.file_stream import sink_manifest\n"
        "FOUND = [sink_manifest('9')]\nODD = 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    scan = scan_plugins([])
    monkeypatch.delitem(sys.modules, "manifests_of_pack")
    found = scan.plugins[-1]
    assert (found.simple_name, found.version, found.location) == (
        "FileStreamSinkConnector",
        "9",
        "classpath",
    )
    assert [line.split(":")[0] for line in sorted(scan.problems)] == [
        "entry point gone",
        "entry point odd",
    ]
