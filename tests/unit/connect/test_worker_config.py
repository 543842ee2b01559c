"""A worker's configuration: Kafka's defaults, Kafka's refusals, and what follows from both."""

import json
from pathlib import Path

import pytest

from coordinator_sim.clients.config import ConnectProtocolCompatibility, WorkerConfig
from coordinator_sim.connect.plugins.registry import Plugins
from coordinator_sim.connect.plugins.standard_plugins import standard_plugins
from coordinator_sim.connect.settings import worker_config
from coordinator_sim.errors import ConfigError

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
NEEDED = {
    "group.id": "connect",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "key.converter": STRINGS,
    "value.converter": STRINGS,
}
REFUSED = Path(__file__).with_name("refused_worker_configs.jsonl")
"""Settings beside those that are needed, and how the message of their refusal begins."""


def config(**more: str) -> worker_config.DistributedConfig:
    """A configuration with what is needed and `more`, dots written as underscores."""
    named = {name.replace("_", "."): value for name, value in more.items()}
    return worker_config.DistributedConfig.from_properties({**NEEDED, **named})


def refusal(**more: str) -> str:
    """The message with which a configuration is refused."""
    with pytest.raises(ConfigError) as caught:
        config(**more)
    return str(caught.value)


def test_what_is_not_given_has_kafkas_defaults() -> None:
    """Only the group, the three topics and two converters must be given."""
    worker = config()
    assert worker.member == WorkerConfig()
    assert worker.member.connect_protocol is ConnectProtocolCompatibility.SESSIONED
    assert worker.exactly_once is worker_config.ExactlyOnceSupport.DISABLED
    assert worker.plugin_discovery is worker_config.PluginDiscovery.HYBRID_WARN
    assert worker.offset_topic.partitions == 25
    assert worker.status_topic.partitions == 5
    assert worker.config_topic.partitions == 1
    assert worker.key_ttl_ms == 3_600_000
    assert worker.verification_algorithms == ("HmacSHA256",)
    assert worker.advertised_url("machine") == "http://machine:8083/"


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_a_missing_required_setting_is_named(name: str) -> None:
    """Each of the six required settings is asked for by its name."""
    props = {key: value for key, value in NEEDED.items() if key != name}
    with pytest.raises(ConfigError) as caught:
        worker_config.DistributedConfig.from_properties(props)
    assert str(caught.value) == (
        f'Missing required configuration "{name}" which has no default value.'
    )


@pytest.mark.parametrize("line", REFUSED.read_text(encoding="utf-8").splitlines())
def test_a_wrong_setting_is_refused_in_one_line(line: str) -> None:
    """The message names setting, value and reason, and is one line."""
    case = json.loads(line)
    said = refusal(**case["settings"])
    assert said.startswith(case["message"])
    assert "\n" not in said


def test_a_converter_must_be_installed() -> None:
    """A converter that no plugin location holds is refused; an alias means the full class."""
    plugins = Plugins(standard_plugins())
    good = worker_config.DistributedConfig.from_properties(
        {**NEEDED, "key.converter": "JsonConverter"}, plugins.full_name
    )
    assert good.key_converter == "org.apache.kafka.connect.json.JsonConverter"
    with pytest.raises(ConfigError) as caught:
        worker_config.DistributedConfig.from_properties(
            {**NEEDED, "key.converter": "No"}, plugins.full_name
        )
    assert str(caught.value) == (
        "Invalid value No for configuration key.converter: Class No could not be found."
    )


def test_unknown_settings_are_only_listed() -> None:
    """A setting nobody knows does not stop the worker; those that others read are no strangers."""
    worker = config(sesion_timeout_ms="1", consumer_fetch_max_bytes="1", ssl_protocol="TLS")
    assert worker.unknown == ("sesion.timeout.ms",)


def test_settings_of_a_topic_are_passed_to_its_creation() -> None:
    """What follows the topic's prefix is a topic setting, but for what the worker decides."""
    props = {
        **NEEDED,
        "config.storage.partitions": "7",
        "config.storage.cleanup.policy": "delete",
        "config.storage.segment.bytes": "1000",
    }
    topic = worker_config.DistributedConfig.from_properties(props).config_topic
    assert topic.partitions == 1
    assert topic.configs == {"segment.bytes": "1000"}


@pytest.mark.parametrize(
    ("settings", "url", "worker_id"),
    [
        ({"listeners": "http://10.0.0.1:9000"}, "http://10.0.0.1:9000/", "10.0.0.1:9000"),
        ({"listeners": "https://:1,http://:2"}, "http://machine:2/", "machine:2"),
        ({"listeners": "https://:1"}, "https://machine:1/", "machine:1"),
        (
            {"listeners": "https://:1,http://:2", "rest_advertised_listener": "HTTPS"},
            "https://machine:1/",
            "machine:1",
        ),
        (
            {"rest_advertised_host_name": "outside", "rest_advertised_port": "80"},
            "http://outside:80/",
            "outside:80",
        ),
    ],
)
def test_the_advertised_url_follows_listeners_and_overrides(
    settings: dict[str, str], url: str, worker_id: str
) -> None:
    """HTTP goes before HTTPS, overrides before listeners, the machine's name comes last."""
    worker = config(**settings)
    assert (worker.advertised_url("machine"), worker.worker_id("machine")) == (url, worker_id)


def test_names_of_clients_and_transactions_follow_the_group() -> None:
    """The ids of a worker's own clients are made of group and client id."""
    assert config().client_id_base == "connect-"
    assert config(client_id="me").client_id_base == "connect-me-"
    assert config().transactional_id == "connect-cluster-connect"


def test_a_properties_file_is_read_as_java_reads_it() -> None:
    """Comments, continued lines, both separators, blanks around them, repeated keys."""
    text = """
# a comment
! another
group.id = connect
listeners=http://a:1,\\
    http://b:2
plugin.path: /plugins
group.id=again
topic.creation.enable
"""
    assert worker_config.parse_properties(text) == {
        "group.id": "again",
        "listeners": "http://a:1,http://b:2",
        "plugin.path": "/plugins",
        "topic.creation.enable": "",
    }


def test_a_character_that_java_writes_as_two_is_one() -> None:
    """Escapes by number are units of UTF-16; half of a pair is replaced."""
    text = r"name=\u00fc\ud83d\ude00 \\u0041 \ud83d"
    assert worker_config.parse_properties(text) == {"name": "\xfc\U0001f600 \\u0041 \ufffd"}
