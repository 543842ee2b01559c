"""Settings by Kafka's names, and backoffs."""

import pytest

from coordinator_sim.clients import config
from coordinator_sim.clients.backoff import NO_JITTER, ExponentialBackoff
from coordinator_sim.errors import ConfigError


class Always:
    """Chance that always draws the same number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def draw(self, site: str, key: str, n: int) -> int:
        """The number, if there is room for it."""
        assert site
        assert key
        return min(self.number, n - 1)


def test_defaults_are_kafkas() -> None:
    """Without settings a consumer and a worker have Kafka's defaults."""
    consumer, worker = config.ConsumerConfig.from_settings({}), config.WorkerConfig()

    assert (consumer.session_timeout_ms, consumer.rebalance_timeout_ms) == (45_000, 300_000)
    assert (consumer.enable_auto_commit, consumer.auto_commit_interval_ms) == (True, 5_000)
    assert (worker.session_timeout_ms, worker.rebalance_timeout_ms) == (10_000, 60_000)
    assert (worker.request_timeout_ms, worker.connect_protocol.protocol_name) == (
        40_000,
        "sessioned",
    )


def test_settings_go_by_kafkas_names() -> None:
    """Every kind of value is read from its text."""
    consumer = config.ConsumerConfig.from_settings(
        {
            "max.poll.interval.ms": "1000",
            "enable.auto.commit": "false",
            "group.instance.id": "one",
            "internal.leave.group.on.close": "false",
        }
    )

    assert consumer.rebalance_timeout_ms == 1_000
    assert not consumer.enable_auto_commit
    assert consumer.group_instance_id == "one"
    assert not consumer.leave_group_on_close


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"session.timeout.ms": "-1"}, "session.timeout.ms=-1 is out of bounds; write 0 to"),
        ({"session.timeout.ms": "soon"}, "session.timeout.ms='soon' is no number"),
        ({"session.timeout.ms": "3000"}, "heartbeat.interval.ms=3000 must be lower than"),
        ({"enable.auto.commit": "yes"}, "enable.auto.commit='yes' is no boolean"),
        ({"sesion.timeout.ms": "1"}, "setting 'sesion.timeout.ms' is unknown; known are"),
        ({"max.poll.interval.ms": "0"}, "max.poll.interval.ms=0 is out of bounds"),
        ({"retry.backoff.ms": "2147483648"}, "write 0 to 2147483647"),
    ],
)
def test_bad_consumer_settings_are_refused(settings: dict[str, str], message: str) -> None:
    """The error names the value, the bound and the fix."""
    with pytest.raises(ConfigError) as refused:
        config.ConsumerConfig.from_settings(settings)

    assert message in str(refused.value)


def test_unknown_connect_protocol_is_refused() -> None:
    """The error lists the protocols there are."""
    with pytest.raises(ConfigError, match="known are default, compatible, sessioned"):
        config.ConnectProtocolCompatibility.from_protocol_name("fast")


def test_backoff_doubles_up_to_its_maximum() -> None:
    """Without jitter the waits are 100, 200, 400, 800, 1000, 1000 ms."""
    backoff = ExponentialBackoff(100, 1_000)

    waits = [backoff.backoff_ms(n, NO_JITTER, site="s", key="k") for n in range(6)]

    assert waits == [100, 200, 400, 800, 1_000, 1_000]


@pytest.mark.parametrize(("drawn", "wait_ms"), [(0, 200), (2_000, 240), (2_001, 160), (4_000, 199)])
def test_jitter_is_twenty_percent_either_way(drawn: int, wait_ms: int) -> None:
    """The whole range of draws spans 80 to 120 percent; draw 0 is no deviation."""
    assert ExponentialBackoff(100, 1_000).backoff_ms(1, Always(drawn), site="s", key="k") == wait_ms


def test_backoff_without_room_is_constant() -> None:
    """An initial wait at or above the maximum gives the maximum, without jitter."""
    assert ExponentialBackoff(500, 200).backoff_ms(3, Always(2_001), site="s", key="k") == 200
