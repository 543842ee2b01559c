"""Which class a name means, where two copies of it lie, and what a manifest says of it."""

import json
from itertools import pairwise

import pytest

from coordinator_sim.connect.herding.requests import ConnectorType
from coordinator_sim.connect.plugins import manifests
from coordinator_sim.connect.plugins.registry import (
    Plugin,
    PluginNotFound,
    Plugins,
    PluginType,
    version_key,
)
from coordinator_sim.connect.plugins.standard_plugins import file_stream_plugins, standard_plugins
from coordinator_sim.errors import ConfigError

MANIFEST = """
class = "org.example.TableSourceConnector"
type = "source"
version = "1.2.0"

[[config]]
name = "tables"
type = "list"

[[config]]
name = "poll.ms"
type = "int"
default = "500"
at_least = 1

[tasks]
rule = "share"
of = "tables"

[work]
records_per_s = 1000
record_bytes = 250
failure = { after_ms = 60000, trace = "gone" }
"""


def connector(name: str, *, location: str = "/plugins/a/", version: str = "1.0") -> Plugin:
    """A source of that class."""
    return Plugin(class_name=name, type=PluginType.SOURCE, version=version, location=location)


def test_a_connector_answers_to_its_class_its_simple_name_and_its_alias() -> None:
    """The suffix Connector may be left out, the suffixes Source and Sink may not."""
    plugins = Plugins(file_stream_plugins())
    full = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    for name in (full, "FileStreamSourceConnector", "FileStreamSource"):
        assert plugins.connector(name).class_name == full
    with pytest.raises(PluginNotFound):
        plugins.connector("FileStream")


def test_an_alias_of_two_classes_means_neither() -> None:
    """Two classes of one simple name can only be named in full."""
    plugins = Plugins([connector("a.XConnector"), connector("b.XConnector")])
    assert plugins.aliases() == {}
    assert plugins.connector("b.XConnector").class_name == "b.XConnector"
    with pytest.raises(PluginNotFound) as caught:
        plugins.connector("X")
    assert str(caught.value).startswith("More than one connector matches alias X. Please use full")


def test_a_missing_class_is_answered_with_the_list_of_those_installed() -> None:
    """The message is Java's, each connector as Java prints its description."""
    with pytest.raises(PluginNotFound) as caught:
        Plugins([connector("a.XConnector"), *standard_plugins()]).connector("Y")
    assert str(caught.value) == (
        "Failed to find any class that implements Connector and which name matches Y, available "
        "connectors are: PluginDesc{klass=class a.XConnector, name='a.XConnector', version='1.0', "
        "encodedVersion=1.0, type=source, typeName='source', location='/plugins/a/'}"
    )


def test_of_two_copies_the_newest_runs_and_of_equals_the_isolated_one() -> None:
    """The order of locations decides only when version and isolation do not."""
    old, new = connector("a.X", version="1.9"), connector("a.X", version="1.10", location="/b/")
    assert Plugins([new, old]).connector("a.X") is new
    shared = connector("a.X", version="1.10", location="classpath")
    assert Plugins([shared, new]).connector("a.X") is new
    assert len(Plugins([old, new, shared]).of_type(PluginType.SOURCE)) == 3


def test_versions_are_ordered_as_maven_orders_them() -> None:
    """Qualifiers stand before the release they lead to, numbers count as numbers."""
    ordered = (
        *("undefined", "1-alpha-1", "1.0-beta2", "1-milestone1", "1-rc1", "1-SNAPSHOT", "1"),
        *("1-sp", "1-1", "1.0.1", "1.2", "1.10", "2.0-rc1", "2"),
    )
    keys = [version_key(version) for version in ordered[1:]]
    assert all(lower < higher for lower, higher in pairwise(keys))
    for same in (("1", "1.0.0"), ("1.0-ga", "1"), ("1-cr1", "1-rc1"), ("1b2", "1-beta-2")):
        assert version_key(same[0])[:1] == version_key(same[1])[:1]
    assert version_key("1.0.0") == version_key("1") == version_key("1.final")


def test_the_direction_of_a_missing_class_is_unknown() -> None:
    """REST shows `unknown` where Java could not load the class."""
    plugins = Plugins(file_stream_plugins())
    assert plugins.connector_type({"connector.class": "FileStreamSink"}) is ConnectorType.SINK
    assert plugins.connector_type({"connector.class": "Nope"}) is ConnectorType.UNKNOWN
    assert plugins.connector_type({}) is ConnectorType.UNKNOWN


def test_a_manifest_is_read_from_toml_and_from_json_alike() -> None:
    """Both languages say the same of a class."""
    manifest = manifests.parse_manifest(MANIFEST, name="table.toml")
    assert manifest.class_name == "org.example.TableSourceConnector"
    assert manifest.tasks.rule is manifests.TaskRule.SHARE
    assert manifest.work.failure == manifests.FailureLaw(after_ms=60_000, trace="gone")
    assert manifest.config_def().parse({"tables": "a, b"}) == {"tables": ("a", "b"), "poll.ms": 500}
    text = json.dumps({"class": "x.YConnector", "type": "sink", "tasks": {"rule": "copies"}})
    assert manifests.parse_manifest(text, name="y.json").tasks.rule is manifests.TaskRule.COPIES


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("class = ", "manifest m.toml: "),
        ('class = "x"\ntype = "neither"', "manifest m.toml: Invalid enum value 'neither'"),
        ('class = "x"\ntype = "sink"\nspeed = 1', "manifest m.toml: Object contains unknown field"),
        (
            'class = "x"\ntype = "sink"\n[tasks]\nrule = "share"',
            "manifest m.toml: rule share needs `of`",
        ),
        (
            'class = "x"\ntype = "sink"\n[work]\nrecords_per_s = -1',
            "work.records_per_s=-1 is negative",
        ),
    ],
)
def test_a_wrong_manifest_is_refused_by_its_file(text: str, reason: str) -> None:
    """The message names the file and what is wrong in it."""
    with pytest.raises(ConfigError) as caught:
        manifests.parse_manifest(text, name="m.toml")
    assert reason in str(caught.value)


def test_shares_are_dealt_in_order_the_first_ones_larger() -> None:
    """Never more groups than elements, and no group is empty."""
    assert manifests.group_partitions(("a", "b", "c", "d", "e"), 2) == [("a", "b", "c"), ("d", "e")]
    assert manifests.group_partitions(("a",), 3) == [("a",)]
    assert manifests.group_partitions((), 3) == []


def test_tasks_get_the_connectors_settings_and_their_class() -> None:
    """A share replaces the divided setting; one task and copies keep it as it is."""
    manifest = manifests.parse_manifest(MANIFEST, name="table.toml")
    tasks = manifest.task_configs({"tables": "a,b,c", "name": "t"}, 2)
    assert [task["tables"] for task in tasks] == ["a,b", "c"]
    assert tasks[0]["task.class"] == "org.example.TableSourceTask"
    source, sink = file_stream_plugins()
    assert source.manifest is not None
    assert sink.manifest is not None
    assert len(source.manifest.task_configs({"file": "f"}, 4)) == 1
    assert (
        sink.manifest.task_configs({"file": "f"}, 2)
        == [{"file": "f", "task.class": "org.apache.kafka.connect.file.FileStreamSinkTask"}] * 2
    )
