"""Groups under load go over to the consumer protocol and back; each record is counted.

The same at a real broker and at ours: no record is lost, none is read twice where nobody was
killed, and an administrator sees the same steps.
"""

from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, TOOLS_VERSION, Broker
from coordinator_sim_conformance.real_kafka.upgrade.hosts import Host
from coordinator_sim_conformance.real_kafka.upgrade.story import VARIANTS, Outcome, play_upgrade
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "8000",
}
OPTIONS = tuple(word for name in QUICK for word in ("--set", f"{name}={QUICK[name]}"))


def outcomes(bootstrap: str) -> list[Outcome]:
    """What each group left at a broker."""
    with Host.of_java(bootstrap) as java:
        return [play_upgrade(bootstrap, each, java, lambda _: None) for each in VARIANTS]


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        (BROKER_VERSION, "4.4"),
        pytest.param(TOOLS_VERSION, "4.3", marks=pytest.mark.nightly),
    ],
)
def test_groups_under_load_are_upgraded_and_come_back_as_at_a_real_broker(
    tmp_path: Path, version: str, profile: str
) -> None:
    """Commits in callbacks and by themselves, Java and librdkafka, and a member that is killed."""
    with Broker(tmp_path, dict(QUICK), version) as broker:
        theirs = outcomes(broker.bootstrap)
    with serving("--port", "0", "--profile", profile, *OPTIONS) as ready:
        ours = outcomes(ready["bootstrap"])

    for variant, real, served in zip(VARIANTS, theirs, ours, strict=True):
        for outcome in (real, served):
            assert outcome.faults() == []
            assert outcome.account.produced > 0
            if variant.killed is None:
                assert outcome.account.repeated == 0
        assert served.steps == real.steps
