"""Settings of topics, brokers and groups: shown with their sources, changed and refused."""

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, PROFILES, profile_named
from coordinator_sim.server.properties import with_properties
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_client import DataClient

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def served(cluster: Cluster) -> Cluster:
    """A cluster with the topic `orders`."""
    cluster.topics.create_spread("orders", 1, Instants(1, 1))
    return cluster


def describe(cluster: Cluster, kind: int, name: str, *keys: str) -> dict[str, Fields]:
    """Settings by name, with their synonyms."""
    resource = {"resourceType": kind, "resourceName": name, "configurationKeys": list(keys)}
    request = {"resources": [resource], "includeSynonyms": True, "includeDocumentation": False}
    (result,) = DataClient(cluster).call(ApiKey.DESCRIBE_CONFIGS, 4, request)["results"]
    return {each["name"]: each for each in result["configs"]}


def alter(cluster: Cluster, kind: int, name: str, *configs: tuple[str, int, str | None]) -> Fields:
    """The result of IncrementalAlterConfigs for one resource."""
    entries = [
        {"name": each, "configOperation": operation, "value": value}
        for each, operation, value in configs
    ]
    resource = {"resourceType": kind, "resourceName": name, "configs": entries}
    request = {"resources": [resource], "validateOnly": False}
    answer = DataClient(cluster).call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    found: Fields = answer["responses"][0]
    return found


def synonyms(entry: Fields) -> list[tuple[str, str, int]]:
    """Name, value and source of each place."""
    return [(each["name"], each["value"], each["source"]) for each in entry["synonyms"]]


def test_setting_of_a_topic_comes_before_that_of_the_brokers(served: Cluster) -> None:
    """The topic's own value counts; what stands behind it is listed."""
    alter(served, TOPIC, "orders", ("max.message.bytes", SET, "2000"))
    alter(served, BROKER, "", ("message.max.bytes", SET, "3000"))

    entry = describe(served, TOPIC, "orders", "max.message.bytes")["max.message.bytes"]

    assert (entry["value"], entry["configSource"]) == ("2000", 1)
    assert synonyms(entry) == [
        ("max.message.bytes", "2000", 1),
        ("message.max.bytes", "3000", 3),
        ("message.max.bytes", "1048588", 5),
    ]


def test_time_in_hours_stands_in_for_milliseconds(served: Cluster) -> None:
    """retention.ms follows log.retention.hours, though no place names log.retention.ms."""
    entry = describe(served, TOPIC, "orders", "retention.ms")["retention.ms"]

    assert (entry["value"], entry["configSource"], entry["synonyms"]) == ("604800000", 5, [])


def test_lists_gain_and_lose_entries(served: Cluster) -> None:
    """APPEND begins at the default; SUBTRACT leaves what is not named."""
    alter(served, TOPIC, "orders", ("cleanup.policy", APPEND, "compact"))
    first = describe(served, TOPIC, "orders", "cleanup.policy")["cleanup.policy"]["value"]
    alter(served, TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete"))
    second = describe(served, TOPIC, "orders", "cleanup.policy")["cleanup.policy"]["value"]

    assert (first, second) == ("delete,compact", "compact")


@pytest.mark.parametrize(
    ("kind", "name", "change", "error"),
    [
        (TOPIC, "orders", ("retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", ("nonsense", SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "nothing", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ("retention.ms", SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (3, "x", ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "2", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("node.id", SET, "5"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("log.retention.ms", SET, "abc"), ErrorCode.INVALID_REQUEST),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "5"), ErrorCode.INVALID_CONFIG),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused_change_leaves_settings_as_they_are(
    served: Cluster,
    kind: int,
    name: str,
    change: tuple[str, int, str | None],
    error: ErrorCode,
) -> None:
    """Each wrong change has its error, and nothing is kept."""
    answer = alter(served, kind, name, change)

    assert answer["errorCode"] == error
    assert (kind, name) not in served.image.configs


def test_password_is_never_shown(served: Cluster) -> None:
    """A secret's value is null, in every place."""
    name = "listener.name.x.ssl.key.password"
    assert alter(served, BROKER, "1", (name, SET, "secret"))["errorCode"] == 0

    entry = describe(served, BROKER, "1", name)[name]

    assert entry["isSensitive"]
    assert "secret" not in str(entry)


def test_fields_of_the_start_are_told_as_settings() -> None:
    """What a cluster was told by fields is shown as what it was told by properties."""
    fields = ClusterSettings(
        auto_create_topics=False,
        num_partitions=7,
        coordinator=CoordinatorConfig(group_max_size=5, offsets_retention_ms=120_000),
        given={"num.partitions": "7", "log.retention.hours": "2"},
    )
    wanted = {
        "auto.create.topics.enable": "false",
        "num.partitions": "7",
        "group.max.size": "5",
        "offsets.retention.minutes": "2",
        "log.retention.hours": "2",
    }
    cluster = Cluster(fields, endpoint=lambda _broker, _listener: Endpoint("h", 1))
    cluster.begin(Instants(1, 1))

    told = describe(cluster, BROKER, "1", *wanted)
    assert {name: entry["value"] for name, entry in told.items()} == wanted
    again = with_properties(ClusterSettings(), wanted)
    assert {**again.properties(), "log.retention.hours": "2"} == wanted


def test_field_that_this_kafka_cannot_be_told_is_not_shown() -> None:
    """Half a minute of retention, a setting that came later: the cluster starts all the same."""
    told = CoordinatorConfig(offsets_retention_ms=30_000, group_coordinator_append_linger_ms=5)
    settings = ClusterSettings(profile=profile_named("2.8"), coordinator=told)
    cluster = Cluster(settings, endpoint=lambda _broker, _listener: Endpoint("h", 1))
    cluster.begin(Instants(1, 1))

    shown = describe(cluster, BROKER, "1")
    assert shown["offsets.retention.minutes"]["value"] == "10080"
    assert "group.coordinator.append.linger.ms" not in shown


def test_unknown_setting_of_the_start_is_one_clear_line() -> None:
    """What `server.properties` may not say is refused by name."""
    with pytest.raises(ConfigError, match=r"unknown broker setting .num\.partition."):
        Configs(DEFAULT_PROFILE, {"num.partition": "3"}, MetadataImage())


@pytest.mark.parametrize(
    ("name", "profiles"),
    [
        ("message.format.version", ["0.10.2", "2.8", "3.9"]),
        ("remote.storage.enable", ["3.9", "4.0", "4.1", "4.2", "4.3", "4.4"]),
        ("message.downconversion.enable", ["2.8", "3.9"]),
        ("min.compaction.lag.ms", list(PROFILES)),
    ],
)
def test_each_release_has_its_own_settings(name: str, profiles: list[str]) -> None:
    """A topic's setting is known where its release has it, and nowhere else."""
    known = [
        each for each in PROFILES if name in Configs(profile_named(each), {}, MetadataImage()).topic
    ]

    assert known == profiles
