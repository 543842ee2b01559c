"""Settings of topics, brokers and groups: shown with their sources, changed and refused."""

import json
from pathlib import Path

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
from tests.unit.broker.frames_client import DataClient

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SESSION = "consumer.session.timeout.ms"
RECORDED = Path(__file__).parents[2] / "data" / "settings"
"""Names that real brokers list; those of 4.1.2 and 4.4.0 had an internal setting set."""
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


def described(cluster: Cluster, kind: int, name: str, version: int = 4) -> list[Fields]:
    """All settings in the order of the answer, with their documentation."""
    request = {
        "resources": [{"resourceType": kind, "resourceName": name}],
        "includeSynonyms": True,
        "includeDocumentation": True,
    }
    (result,) = DataClient(cluster).call(ApiKey.DESCRIBE_CONFIGS, version, request)["results"]
    found: list[Fields] = result["configs"]
    return found


def served_as(profile: str, **given: str) -> Cluster:
    """A broker of that profile with these settings (_ for dots) and the topic `orders`."""
    named = {name.replace("_", "."): value for name, value in given.items()}
    settings = ClusterSettings(profile=PROFILES[profile], given=named)
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.topics.create_spread("orders", 1, Instants(1, 1))
    return cluster


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
    served: Cluster, kind: int, name: str, change: tuple[str, int, str | None], error: ErrorCode
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


@pytest.mark.parametrize("release", ["2.8.2", "4.1.2", "4.4.0"])
def test_settings_are_listed_in_the_order_of_a_real_broker(release: str) -> None:
    """2.8 and 4.1 list them in Scala's order, 4.4 in Java's; 2.8 shows internal ones, too."""
    profile = release[:3]
    given = {} if profile == "2.8" else {"unstable_feature_versions_enable": "false"}
    cluster = served_as(profile, **given)
    kinds = {"broker": (BROKER, "1"), "topic": (TOPIC, "orders"), "group": (GROUP, "any")}

    recorded = RECORDED.joinpath(f"kafka-{release}.jsonl").read_text("utf-8").splitlines()

    for line in map(json.loads, recorded):
        found = described(cluster, *kinds[line["of"]], version=3)
        assert [each["name"] for each in found] == line["names"], line["of"]


def test_internal_setting_is_listed_where_it_is_set() -> None:
    """It comes before those that every broker shows."""
    name = "producer.id.expiration.check.interval.ms"
    assert name not in describe(served_as("4.4"), BROKER, "1")
    first = described(served_as("4.4", **{name: "500"}), BROKER, "1")[0]
    assert (first["name"], first["value"], first["readOnly"]) == (name, "500", True)


@pytest.mark.parametrize(
    ("profile", "kind", "name", "setting", "text"),
    [
        ("4.4", BROKER, "1", "log.cleaner.threads", "The number of background threads to use"),
        ("4.4", TOPIC, "orders", "retention.ms", "This configuration controls the maximum time"),
        ("4.4", GROUP, "any", "share.auto.offset.reset", "The strategy to initialize the share-"),
        ("4.4", METRICS, "any", "match", "Client match criteria"),
        ("2.8", TOPIC, "orders", "retention.ms", "This configuration controls the maximum time"),
    ],
)
def test_documentation_is_that_of_the_release(
    profile: str, kind: int, name: str, setting: str, text: str
) -> None:
    """Only a request that asks for it gets it, and only known settings have one."""
    cluster = served_as(profile)
    found = {each["name"]: each for each in described(cluster, kind, name, version=3)}

    assert found[setting]["documentation"].startswith(text)
    assert all(each["documentation"] for each in found.values())
    request = {"resources": [{"resourceType": kind, "resourceName": name}]}
    (result,) = DataClient(cluster).call(ApiKey.DESCRIBE_CONFIGS, 3, request)["results"]
    assert {each["documentation"] for each in result["configs"]} == {None}


@pytest.mark.parametrize("profile", ["2.8", "3.9"])
def test_group_of_a_release_without_group_settings_has_none(profile: str) -> None:
    """The resource type is answered all the same."""
    assert described(served_as(profile), GROUP, "g") == []


@pytest.mark.parametrize(
    ("profile", "own", "wanted"),
    [
        ("4.3", None, [("group." + SESSION, "47000", 4), ("group." + SESSION, "45000", 5)]),
        (
            "4.3",
            "50000",
            [
                (SESSION, "50000", 8),
                ("group." + SESSION, "47000", 4),
                ("group." + SESSION, "45000", 5),
            ],
        ),
        ("4.2", None, [(SESSION, "47000", 5)]),
        ("4.2", "50000", [(SESSION, "50000", 8)]),
    ],
)
def test_setting_of_a_group_names_the_brokers_setting_behind_it(
    profile: str, own: str | None, wanted: list[tuple[str, str, int]]
) -> None:
    """Releases before 4.3 do not name it."""
    cluster = served_as(profile, group_consumer_session_timeout_ms="47000")
    if own is not None:
        alter(cluster, GROUP, "g", (SESSION, SET, own))

    found = describe(cluster, GROUP, "g", SESSION)[SESSION]

    assert synonyms(found) == wanted
    assert found["value"] == wanted[0][1]


def test_group_has_the_defaults_of_the_broker_that_is_asked() -> None:
    """A broker's dynamic setting comes before that of all brokers."""
    cluster, name = served_as("4.3"), "consumer.assignment.interval.ms"
    alter(cluster, BROKER, "", (f"group.{name}", SET, "2000"))
    alter(cluster, BROKER, "1", (f"group.{name}", SET, "1500"))

    found = describe(cluster, GROUP, "g", name)[name]

    assert (found["value"], found["configSource"]) == ("1500", 2)
    assert synonyms(found)[:2] == [(f"group.{name}", "1500", 2), (f"group.{name}", "2000", 3)]


def test_client_metrics_have_no_defaults_before_4_1() -> None:
    """What is set is shown without a type."""
    for profile, names in (("4.0", ["interval.ms"]), ("4.1", ["interval.ms", "match", "metrics"])):
        cluster = served_as(profile)
        alter(cluster, METRICS, "m", ("interval.ms", SET, "60000"))
        assert [each["name"] for each in described(cluster, METRICS, "m")] == names
