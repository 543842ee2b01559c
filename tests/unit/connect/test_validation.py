"""Validation of connector configurations, compared with the answers of a real worker (4.3.1)."""

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.connect.herding.requests import PluginFailure
from coordinator_sim.connect.plugins.registry import Plugins
from coordinator_sim.connect.plugins.standard_plugins import file_stream_plugins, standard_plugins
from coordinator_sim.connect.settings.validation import InstalledPlugins
from tests.unit.connect.rest_bench import exchanges

SOURCE = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "t", "name": "v"}
SINK = {"connector.class": "FileStreamSink", "name": "v"}
REFUSED = Path(__file__).with_name("refused_configs.jsonl")
"""Mistakes in a configuration that is right otherwise, and Kafka's message of each."""
NEWER = (".plugin.version", "schema.content")
"""Settings that Kafka has only had since 4.1; their answers are passed over."""


def installed() -> InstalledPlugins:
    """The plugins of the recorded worker."""
    found = file_stream_plugins(location="file:/plugins/file/")
    return InstalledPlugins(Plugins((*standard_plugins(), *found)))


def plain(definition: dict[str, Any]) -> dict[str, Any]:
    """A definition without what newer releases changed: numbering, and defaults of converters."""
    changed = {"documentation": "", "order_in_group": 0}
    if definition["type"] == "CLASS":
        changed["default_value"] = ""
    return {**definition, **changed}


def plain_value(value: dict[str, Any]) -> dict[str, Any]:
    """A value without what newer releases fill in for converters that are not given."""
    if value["name"].endswith(".converter"):
        return {**value, "recommended_values": [], "value": None}
    return {**value, "recommended_values": sorted(value["recommended_values"])}


@pytest.mark.parametrize("name", ["plugin config source", "plugin config sink"])
def test_a_plugins_definitions_are_those_of_the_real_worker(name: str) -> None:
    """Own settings first, then the common ones, in the same order and of the same kinds."""
    exchange = exchanges()[name]
    plugin = exchange["request"]["target"].split("/")[2]
    ours = installed().config_definition(plugin)
    assert ours is not None
    theirs = [each for each in exchange["response"]["body"] if not each["name"].endswith(NEWER)]
    assert [plain(each) for each in ours] == [plain(each) for each in theirs]


@pytest.mark.parametrize(
    "name", ["validate ok", "validate bad", "validate sink", "validate good converter"]
)
def test_validation_finds_what_the_real_worker_finds(name: str) -> None:
    """The same settings in the same order, with the same values and messages."""
    exchange = exchanges()[name]
    ours = installed().validate(json.loads(exchange["request"]["body"]))
    theirs = exchange["response"]["body"]
    assert (ours.name, ours.error_count) == (theirs["name"], theirs["error_count"])
    assert list(ours.groups) == theirs["groups"]
    theirs_configs = [
        config for config in theirs["configs"] if not config["value"]["name"].endswith(NEWER)
    ]
    assert [plain_value(c.value) for c in ours.configs if c.value is not None] == [
        plain_value(config["value"]) for config in theirs_configs
    ]
    assert [plain(c.definition) for c in ours.configs if c.definition is not None] == [
        plain(config["definition"]) for config in theirs_configs
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("missing topic", "tasks.max zero", "tasks.max text", "no name", "null config value"),
        *("sink without topics", "sink with both", "sink dlq in topics"),
    ],
)
def test_messages_are_those_of_the_real_worker(name: str) -> None:
    """The messages that a refused request lists, in their order."""
    exchange = exchanges()[name]
    body = json.loads(exchange["request"]["body"])
    config = body.get("config", body)
    config.setdefault("name", body.get("name", "" if "config" in body else "snk2"))
    lines = exchange["response"]["body"]["message"].split("\n")
    assert list(installed().validate(config).errors()) == lines[1:-1]


def test_without_a_class_validation_cannot_begin() -> None:
    """Neither a missing class nor one that is not installed has settings to look at."""
    plugins = installed()
    assert plugins.validation_errors({"name": "x"}) == PluginFailure(
        exchanges()["no class"]["response"]["body"]["message"]
    )
    assert plugins.validation_errors({"connector.class": "Nope"}) == PluginFailure(
        exchanges()["unknown class"]["response"]["body"]["message"]
    )


def test_a_worker_without_the_plugin_says_so_in_the_trace() -> None:
    """What the status topic shows begins with Java's exception and message."""
    failure = installed().start_failure({"connector.class": "Nope"})
    assert failure is not None
    assert failure.trace.startswith(
        "org.apache.kafka.connect.errors.ConnectException: Failed to find any class that "
        "implements Connector and which name matches Nope, available connectors are: "
    )
    assert installed().start_failure(SOURCE) is None
    assert installed().task_configs({"connector.class": "Nope"}, 1) == failure


@pytest.mark.parametrize("line", REFUSED.read_text(encoding="utf-8").splitlines())
def test_one_mistake_gives_one_message(line: str) -> None:
    """Each rule speaks in Kafka's words."""
    case = json.loads(line)
    config = {**{"source": SOURCE, "sink": SINK}[case["connector"]], **case["config"]}
    assert installed().validate(config).errors() == (case["message"],)


def test_tasks_of_a_source_and_of_a_sink() -> None:
    """FileStreamSource has one task, FileStreamSink as many as it may."""
    source = installed().task_configs(SOURCE, 3)
    assert isinstance(source, list)
    assert len(source) == 1
    sink = installed().task_configs({**SINK, "topics": "t"}, 3)
    assert isinstance(sink, list)
    assert len(sink) == 3
