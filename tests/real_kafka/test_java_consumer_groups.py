"""Consumer groups of Java's clients by the new protocol: they print what they do at real Kafka."""

from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka import kafka
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
OPTIONS = tuple(word for name in QUICK for word in ("--set", f"{name}={QUICK[name]}"))


def story(version: str, bootstrap: str) -> list[str]:
    """What the client of a release prints."""
    done = kafka.run_java(version, str(kafka.HERE / "ConsumerGroupClient.java"), bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        (kafka.BROKER_VERSION, "4.4"),
        pytest.param(kafka.TOOLS_VERSION, "4.3", marks=pytest.mark.nightly),
    ],
)
def test_members_come_restart_and_go_as_at_a_real_broker(
    tmp_path: Path, version: str, profile: str
) -> None:
    """Shares, epochs, records, static members, expressions, settings of groups and their bounds.

    Kafka's client asserts nothing here: each line is its own account, and ours is Kafka's.
    """
    with kafka.Broker(tmp_path, dict(QUICK), version) as broker:
        theirs = story(version, broker.bootstrap)
    assert "read 1920 of 1920 in order" in theirs
    with serving("--port", "0", "--profile", profile, *OPTIONS) as ready:
        ours = story(version, ready["bootstrap"])

    assert ours == theirs
