"""Groups under load go over to the consumer protocol and back; each record is counted.

The same at a real broker and at ours: no record is lost, none is read twice but what a killed
member, or a cooperative one that commits automatically, had not committed, and an administrator
sees the same steps.
"""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from coordinator_sim_conformance.real_kafka import kafka
from coordinator_sim_conformance.real_kafka.upgrade import story
from coordinator_sim_conformance.real_kafka.upgrade.hosts import PATIENCE_S, Host
from tests.unit.cli.test_serve import COMMAND, serving

pytestmark = pytest.mark.real_kafka

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "8000",
}


def options(settings: dict[str, str]) -> tuple[str, ...]:
    """Arguments of `serve` for broker settings."""
    return tuple(word for name in settings for word in ("--set", f"{name}={settings[name]}"))


OPTIONS = options(QUICK)
ENDS = {"auto": {"revoked"}, "killed": {"killed"}}
"""Of a group, how owners ended whose records may be read again."""
NAMED = {each.group: each for each in story.VARIANTS}


def outcomes(bootstrap: str, variants: Sequence[story.Variant]) -> list[story.Outcome]:
    """What each group left at a broker."""
    with Host.of_java(bootstrap) as java:
        return [story.play_upgrade(bootstrap, each, java, lambda _: None) for each in variants]


@pytest.mark.parametrize(
    ("version", "profile", "groups"),
    [
        pytest.param(kafka.BROKER_VERSION, "4.4", ("java", "mixed", "auto", "killed"), id="4.4"),
        pytest.param(
            kafka.BROKER_VERSION, "4.4", ("static",), marks=pytest.mark.nightly, id="static"
        ),
        pytest.param(
            kafka.TOOLS_VERSION, "4.3", tuple(NAMED), marks=pytest.mark.nightly, id="4.3 and static"
        ),
    ],
)
def test_groups_under_load_are_upgraded_and_come_back_as_at_a_real_broker(
    tmp_path: Path, version: str, profile: str, groups: tuple[str, ...]
) -> None:
    """Commits in callbacks and by themselves, Java and librdkafka, and a member that is killed."""
    variants = [NAMED[group] for group in groups]
    with kafka.Broker(tmp_path, dict(QUICK), version) as broker:
        theirs = outcomes(broker.bootstrap, variants)
    with serving("--port", "0", "--profile", profile, *OPTIONS) as ready:
        ours = outcomes(ready["bootstrap"], variants)

    for variant, real, served in zip(variants, theirs, ours, strict=True):
        for outcome in (real, served):
            assert outcome.faults() == []
            assert outcome.account.produced > 0
            ends = {each.end for each in outcome.account.repeats}
            assert ends <= ENDS.get(variant.group, set())
        assert served.steps == real.steps


PATIENT = {**QUICK, "group.consumer.session.timeout.ms": "45000"}
"""Sessions that outlast the restart of a broker in a JVM."""
BROKEN = story.Variant(
    group="broken", members=("j0", "r0"), assignor="range", commits="own", session_ms=45_000
)


def broken(bootstrap: str, break_broker: Callable[[], None]) -> story.Outcome:
    """What a group leaves whose broker is killed and comes back while the group is mixed."""
    with (
        Host.of_java(bootstrap) as java,
        story.Upgrade(bootstrap, BROKEN, java, lambda _: None, break_broker) as upgrade,
    ):
        return upgrade.play()


class Served:
    """A server on a directory that can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._port = kafka.free_ports()[0]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap = f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, with what it left."""
        where = ("--port", str(self._port), "--log-dir", self._folder)
        self._process = subprocess.Popen(
            [*COMMAND, "serve", *where, *options(PATIENT)], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith(b"{")

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()


@pytest.mark.nightly
def test_mixed_group_outlives_its_broker_as_at_a_real_broker(tmp_path: Path) -> None:
    """A broker that is killed loads the group from its log; both kinds of members go on."""
    with kafka.Broker(tmp_path / "real", dict(PATIENT)) as broker:

        def again() -> None:
            broker.kill()
            broker.start()

        real = broken(broker.bootstrap, again)
    server = Served(tmp_path / "served")
    server.start()

    def served_again() -> None:
        server.kill()
        server.start()

    try:
        served = broken(server.bootstrap, served_again)
    finally:
        server.kill()

    for outcome in (real, served):
        assert outcome.faults() == []
        assert outcome.account.repeats == []
    assert served.steps == real.steps


def refusal(bootstrap: str) -> list[str]:
    """What Java's new consumer and an administrator are told of a group that librdkafka leads."""
    common = {"group.id": "led", "enable.auto.commit": "false"}
    classic = {"partition.assignment.strategy": "cooperative-sticky", "group.protocol": "classic"}
    with Host.of_librdkafka(bootstrap) as old, Host.of_java(bootstrap) as java:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(PATIENCE_S)
        for name in ("r0", "r1"):
            old.start(name, ["t"], {**common, **classic})
        old.wait_for(lambda: len({who for _, who in old.owned}) == 2, "r0 and r1 to share")
        old.stop("r1")
        old.wait_for(lambda: len(old.owned) == 2, "r0 to own the topic")
        java.start("j0", ["t"], {**common, "group.protocol": "consumer"})
        java.wait_for(lambda: len(java.troubles) > 0, "j0 to fail")
        return [java.troubles[0].split(maxsplit=1)[1], java.ask("group", "led")]


@pytest.mark.nightly
def test_group_that_librdkafka_leads_cooperatively_is_not_upgraded(tmp_path: Path) -> None:
    """Its cooperative-sticky puts user data into assignments of members that owned something."""
    with kafka.Broker(tmp_path, dict(QUICK)) as broker:
        theirs = refusal(broker.bootstrap)
    with serving("--port", "0", *OPTIONS) as ready:
        ours = refusal(ready["bootstrap"])

    assert "unsupported custom assignor is in use" in theirs[0]
    assert ours == theirs
