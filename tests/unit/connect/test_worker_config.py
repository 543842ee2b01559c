"""A worker's configuration: Kafka's defaults, Kafka's refusals, and what follows from both."""

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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"session_timeout_ms": "soon"},
            "Invalid value soon for configuration session.timeout.ms: Not a number of type INT",
        ),
        (
            {"scheduled_rebalance_max_delay_ms": "-1"},
            (
                "Invalid value -1 for configuration scheduled.rebalance.max.delay.ms: "
                "Value must be at least 0"
            ),
        ),
        (
            {"connect_protocol": "lazy"},
            (
                "Invalid value lazy for configuration connect.protocol: "
                "Invalid Connect protocol compatibility"
            ),
        ),
        (
            {"exactly_once_source_support": "maybe"},
            (
                "Invalid value maybe for configuration exactly.once.source.support: "
                "String must be one of (case insensitive): DISABLED, PREPARING, ENABLED"
            ),
        ),
        (
            {"config_storage_replication_factor": "40000"},
            (
                "Invalid value 40000 for configuration config.storage.replication.factor: "
                "Not a number of type SHORT"
            ),
        ),
        (
            {"offset_storage_partitions": "0"},
            (
                "Invalid value 0 for configuration offset.storage.partitions: Number of partitions "
                "must be positive, or -1 to use the broker's default"
            ),
        ),
        (
            {"topic_tracking_enable": "yes"},
            (
                "Invalid value yes for configuration topic.tracking.enable: "
                "Expected value to be either true or false"
            ),
        ),
        ({"listeners": ""}, "Invalid value for listeners, at least one URL is expected, ex: "),
        ({"listeners": "http://a:1,,"}, "Empty URL found when parsing listeners list."),
        ({"listeners": "a:1"}, "Listener doesn't have the right format"),
        ({"listeners": "ftp://a:1"}, 'Listener protocol must be either "http" or "https".'),
        ({"admin_listeners": "http://a:1,"}, "Empty URL found when parsing admin.listeners list."),
        (
            {"inter_worker_signature_algorithm": "HmacSHA512"},
            (
                "Invalid value HmacSHA512 for configuration inter.worker.signature.algorithm: "
                "Signature algorithm must be present in inter.worker.verification.algorithms list"
            ),
        ),
        (
            {"inter_worker_verification_algorithms": ""},
            (
                "Invalid value [] for configuration inter.worker.verification.algorithms: "
                "At least one signature verification algorithm must be provided"
            ),
        ),
        (
            {"inter_worker_key_size": "8"},
            "Unable to create key generator with algorithm HmacSHA256",
        ),
        (
            {"inter_worker_key_generation_algorithm": "Rot13"},
            (
                "Invalid value Rot13 for configuration inter.worker.key.generation.algorithm: "
                "the algorithm is not supported by this JVM"
            ),
        ),
        (
            {"heartbeat_interval_ms": "10000"},
            "heartbeat.interval.ms=10000 must be lower than session.timeout.ms=10000",
        ),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(settings: dict[str, str], message: str) -> None:
    """The message names setting, value and reason, and is one line."""
    said = refusal(**settings)
    assert said.startswith(message)
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
