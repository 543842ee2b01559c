"""Settings on the command line, and profiles by version."""

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.replay.settings import Settings, parse_grid
from coordinator_sim.replay.versions import profile_for
from coordinator_sim.replay.work import parse_partitions


def settings_of(texts: list[str]) -> Settings:
    """The only combination of these texts."""
    (settings,) = parse_grid(texts)
    return settings


def test_settings_go_by_their_kafka_names() -> None:
    """A consumer's `max.poll.interval.ms` is its rebalance timeout; blanks count for nothing."""
    settings = settings_of(["session.timeout.ms = 10000", "max.poll.interval.ms=300000"])
    assert settings == Settings(session_timeout_ms=10_000, rebalance_timeout_ms=300_000)
    assert settings.given == {"session.timeout.ms": 10_000, "rebalance.timeout.ms": 300_000}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("session.timeout.ms=-1", "session.timeout.ms=-1: must be from 1 to 2147483647"),
        ("session.timeout.ms=soon", "give a whole number from 1"),
        ("sesion.timeout.ms=1", "give key=value with one of session.timeout.ms"),
        ("session.timeout.ms", "give key=value"),
        ("session.timeout.ms=10000,,45000", "session.timeout.ms=10000,,45000: a value is empty"),
        ("group.instance.id=web-1", "group.instance.id=web-1: must be one of stable, none"),
        ("partition.assignment.strategy=best", "must be one of range, roundrobin, sticky"),
        ("connect.protocol=v2", "must be one of eager, compatible, sessioned"),
        ("scheduled.rebalance.max.delay.ms=-1", "must be from 0 to"),
    ],
)
def test_bad_setting_names_value_and_bound(text: str, words: str) -> None:
    """A setting that cannot be is refused in one line that says what can."""
    with pytest.raises(ConfigError, match=words):
        settings_of([text])


def test_several_values_are_a_grid() -> None:
    """Every combination once, the last key changing first; a repeated value counts once."""
    grid = parse_grid(
        ["session.timeout.ms=10000,45000,10000", "group.instance.id=stable,none"], "3.9"
    )
    assert [each.label for each in grid] == [
        "session.timeout.ms=10000 group.instance.id=stable profile=3.9",
        "session.timeout.ms=10000 group.instance.id=none profile=3.9",
        "session.timeout.ms=45000 group.instance.id=stable profile=3.9",
        "session.timeout.ms=45000 group.instance.id=none profile=3.9",
    ]


def test_settings_that_no_client_starts_with_are_refused() -> None:
    """A heartbeat interval as long as the session is refused in one line, as clients do."""
    with pytest.raises(ConfigError, match=r"heartbeat\.interval\.ms=9000 with session\.timeout"):
        parse_grid(["heartbeat.interval.ms=3000,9000", "session.timeout.ms=9000"])


def test_a_grid_has_a_largest_size() -> None:
    """Each combination is a replay of the whole trace: 1,001 are refused, with the bound."""
    many = ",".join(map(str, range(1, 1_002)))
    with pytest.raises(ConfigError, match="1001 combinations of settings: at most 1000"):
        parse_grid([f"group.max.size={many}"])


def test_unknown_release_is_refused_with_those_that_there_are() -> None:
    """A release without a profile is misuse."""
    with pytest.raises(ConfigError, match=r"--profile 9\.9: must be one of"):
        parse_grid([], "9.9")


@pytest.mark.parametrize("text", ["orders", "orders=", "=3", "orders=0", "orders=many", "g:=4"])
def test_partitions_that_cannot_be_are_refused(text: str) -> None:
    """One line names the text."""
    with pytest.raises(ConfigError, match=f"--partitions {text}: "):
        parse_partitions([text])


def test_partitions_may_be_of_one_group() -> None:
    """A group id may hold a colon, and what is given for a group wins."""
    given = parse_partitions(["orders=12", "team:web:orders=3", "team:web:clicks=4"])
    assert given.of("other").topics == {"orders": 12}
    assert given.of("team:web").topics == {"orders": 3, "clicks": 4}


def test_initial_delay_may_be_zero() -> None:
    """Kafka's own server.properties sets it so."""
    settings = settings_of(["group.initial.rebalance.delay.ms=0"])
    assert settings.group_initial_rebalance_delay_ms == 0
    assert not settings.is_empty


@pytest.mark.parametrize(
    ("version_range", "profile", "is_nearest"),
    [
        ("0.9-0.10", "0.10.2", True),
        ("0.11-2.0", "2.8", True),
        ("2.8", "2.8", False),
        ("3.2-3.9", "3.9", True),
        ("3.7-4.x", "4.4", True),
        ("4.x", "4.4", False),
        (None, "4.4", True),
    ],
)
def test_version_range_picks_the_nearest_profile(
    version_range: str | None, profile: str, is_nearest: bool
) -> None:
    """Every age of Kafka has a profile that is its own or the nearest, and says which."""
    choice = profile_for(version_range)
    assert (choice.profile.name, choice.is_nearest) == (profile, is_nearest)
