"""franz-go's members, classic and new: a group goes over to the new protocol as at real Kafka."""

from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka.kafka import Broker
from coordinator_sim_conformance.real_kafka.tools import Tools
from tests.clients.franz import FranzConsumer, franz, wait_until
from tests.real_kafka.test_consumer_group_tools import lines
from tests.real_kafka.test_online_upgrade import OPTIONS, QUICK
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

GROUP = {"topic": "t", "group": "g"}
PARTITIONS = 6
CLASSIC = {"balancer": "range"}
NEW = {"balancer": "sticky", "protocol": "consumer"}
STATIC = {**NEW, "instance": "static"}


class Story:
    """A group at a broker; each change of members comes with records.

    Args:
        bootstrap: Address of the broker.
        tools: Kafka's tools for it.
    """

    def __init__(self, bootstrap: str, tools: Tools) -> None:
        self._bootstrap = bootstrap
        self._tools = tools
        self._members: dict[str, FranzConsumer] = {}
        self._everybody: list[FranzConsumer] = []
        self._written = 0
        self.told: list[list[str]] = []

    def play(self) -> None:
        """Two classic members; one of them new, then both; a static one comes and goes; the end."""
        self._joins("a", CLASSIC)
        self._joins("b", CLASSIC)
        self._leaves("a")
        self._joins("a", NEW)
        self._leaves("b")
        self._joins("b", NEW)
        self._joins("c", STATIC)
        self._static_member_goes()
        for name in ("a", "b"):
            self._members.pop(name).close()
        self._look()
        found = sorted(int(value) for each in self._everybody for value in each.values)
        self.told.append([f"each read once {found == list(range(self._written))}"])

    def _static_member_goes(self) -> None:
        """franz-go 1.22 leaves with epoch -2 and no instance id, which a broker refuses.

        The member stays until its session ends.
        """
        self._members.pop("c").close()
        self._look()
        self._settles()

    def _joins(self, name: str, settings: dict[str, str]) -> None:
        self._members[name] = FranzConsumer(self._bootstrap, **GROUP, **settings)
        self._everybody.append(self._members[name])
        self._settles()

    def _leaves(self, name: str) -> None:
        self._members.pop(name).close()
        self._settles()

    def _settles(self) -> None:
        """Records are written meanwhile; the group is looked at when all are read."""
        first, self._written = self._written, self._written + 300
        franz("produce", self._bootstrap, topic="t", partitions=6, first=first, count=300)
        share = PARTITIONS // len(self._members)
        wait_until(lambda: all(len(each.owned) == share for each in self._members.values()))
        wait_until(lambda: sum(len(each.values) for each in self._everybody) >= self._written)
        self._look()

    def _look(self) -> None:
        for detail in ("--state", "--members"):
            call = ("groups", "--describe", "--group", "g", detail)
            self.told.append(lines(self._tools.run(*call)))


def told_at(bootstrap: str) -> list[list[str]]:
    """What is seen of the group, step by step."""
    with Tools(bootstrap) as tools:
        create = ("--create", "--topic", "t", "--partitions", "6", "--replication-factor", "1")
        assert tools.run("topics", *create).status == 0
        story = Story(bootstrap, tools)
        story.play()
        return story.told


def test_members_go_over_to_the_new_protocol_as_at_a_real_broker(tmp_path: Path) -> None:
    """States, assignors, shares, of a static member, too; each record is read once."""
    with Broker(tmp_path, dict(QUICK)) as broker:
        theirs = told_at(broker.bootstrap)
    assert ["each read once True"] in theirs
    with serving("--port", "0", *OPTIONS) as ready:
        ours = told_at(ready["bootstrap"])

    assert ours == theirs
