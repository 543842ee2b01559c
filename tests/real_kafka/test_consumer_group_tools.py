"""Consumer groups of librdkafka's members, as Kafka's own tools show and change them.

The same calls at a real broker and at ours, while the members live and afterwards; also of a group
on its way to the new protocol, and back.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from coordinator_sim_conformance.real_kafka.kafka import Broker
from coordinator_sim_conformance.real_kafka.tools import Said, Tools
from tests.clients.librdkafka import consumer, owned_by, produce, read, settle
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
OPTIONS = tuple(word for name in QUICK for word in ("--set", f"{name}={QUICK[name]}"))
ORDERS = ("--topic", "orders")
APP = ("--group", "app")
MEMBER = re.compile(
    r"(?<= )(?:\w+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w/+-]{22}(?:==)?)(?= )"
)
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
LEVEL = re.compile(r"(Feature: group\.version\s+Supported.*?FinalizedVersionLevel: \d+)")
COUNT = 60
Told = list[tuple[tuple[str, ...], list[str]]]
"""Each call, and what was said."""


def while_they_live() -> Iterator[tuple[str, ...]]:
    """What an administrator asks of a group with members."""
    yield ("groups", "--list")
    yield ("groups", "--list", "--state", "--type")
    yield ("groups", "--list", "--type", "consumer", "--state", "stable")
    yield ("groups", "--list", "--type", "classic")
    yield from descriptions()
    yield ("groups", "--reset-offsets", *APP, *ORDERS, "--to-earliest", "--execute")
    yield ("groups", "--delete-offsets", *APP, *ORDERS)
    yield ("groups", "--delete", *APP)


def descriptions() -> Iterator[tuple[str, ...]]:
    """Every description of a group."""
    for detail in ("", "--members", "--state", "--offsets"):
        yield tuple(filter(None, ("groups", "--describe", *APP, detail)))
        yield tuple(filter(None, ("groups", "--describe", *APP, detail, "--verbose")))


def afterwards() -> Iterator[tuple[str, ...]]:
    """What is asked when they have left."""
    yield ("groups", "--describe", *APP, "--state")
    yield ("groups", "--describe", *APP, "--members")
    yield ("groups", "--reset-offsets", *APP, *ORDERS, "--to-offset", "3", "--execute")
    yield ("groups", "--describe", *APP, "--offsets")
    yield ("groups", "--delete-offsets", *APP, "--topic", "orders:0")
    yield ("groups", "--describe", *APP)
    yield ("groups", "--delete", *APP)
    yield ("groups", "--list", "--state", "--type")
    yield ("groups", "--describe", *APP)


def features() -> Iterator[tuple[str, ...]]:
    """The level of `group.version` goes down, where it may not go and up again."""
    yield ("features", "describe")
    yield ("features", "downgrade", "--feature", "group.version=0", "--dry-run")
    yield ("features", "downgrade", "--feature", "group.version=0")
    yield ("features", "describe")
    yield ("features", "upgrade", "--feature", "group.version=2")
    yield ("features", "upgrade", "--feature", "group.version=1")


def lines(said: Said) -> list[str]:
    """What a tool said, without ids that are drawn; rows of a table have no order."""
    named = [MEMBER.sub("MEMBER", ADDRESS.sub("ADDRESS", each)) for each in said.lines]
    masked = [re.sub(r"\s+", " ", each).strip() for each in named]
    return [str(said.status), *sorted(masked)]


def story(bootstrap: str) -> Told:
    """A group of the consumer protocol alone."""
    told: Told = []
    with Tools(bootstrap) as tools:
        create = ("topics", "--create", *ORDERS, "--partitions", "6", "--replication-factor", "1")
        assert tools.run(*create).status == 0
        members = [consumer(bootstrap, "app", client_id="c", group_protocol="consumer")]
        members.append(consumer(bootstrap, "app", client_id="c", group_protocol="consumer"))
        read_all(bootstrap, members)
        told += [(call, lines(tools.run(*call))) for call in while_they_live()]
        for each in members:
            each.close()
        told += [(call, lines(tools.run(*call))) for call in afterwards()]
        for call in features():
            said = lines(tools.run(*call))
            if call[1] == "describe":
                said = [found[1] for each in said if (found := LEVEL.search(each))]
            told.append((call, said))
    return told


def read_all(bootstrap: str, members: list[Consumer]) -> None:
    """Two members share the topic; each record is read once, and committed."""
    for count, member in enumerate(members, 1):
        member.subscribe(["orders"])
        settle(members[:count], 6)
    produce(bootstrap, "orders", [b"%d" % number for number in range(COUNT)])
    values = read(members, COUNT)
    assert sorted(values, key=int) == [b"%d" % number for number in range(COUNT)]
    assert sorted(len(owned_by(each)) for each in members) == [3, 3]
    for member in members:
        member.commit(asynchronous=False)


def test_tools_say_of_consumer_groups_what_they_say_at_a_real_broker(tmp_path: Path) -> None:
    """Lists, descriptions, refusals, offsets, deletion, and the feature's levels."""
    with Broker(tmp_path, dict(QUICK)) as broker:
        theirs = story(broker.bootstrap)
    with serving("--port", "0", *OPTIONS) as ready:
        ours = story(ready["bootstrap"])

    for call, said in zip(theirs, ours, strict=True):
        assert said == call


def asked(tools: Tools, calls: Iterator[tuple[str, ...]]) -> Told:
    """Each call, and what is said now."""
    return [(call, lines(tools.run(*call))) for call in calls]


def migration(bootstrap: str) -> Told:
    """A group with a classic member and a new one, on its way there and on its way back."""
    with Tools(bootstrap) as tools:
        create = ("topics", "--create", *ORDERS, "--partitions", "6", "--replication-factor", "1")
        assert tools.run(*create).status == 0
        produce(bootstrap, "orders", [b"%d" % number for number in range(COUNT)])
        old = joined(bootstrap, "old", "classic", [])
        read([old], COUNT)
        old.commit(asynchronous=False)
        told = asked(tools, descriptions())
        new = joined(bootstrap, "new", "consumer", [old])
        told += asked(tools, while_they_live())
        old.close()
        settle([new], 6)
        told += asked(tools, descriptions())
        back = joined(bootstrap, "back", "classic", [new])
        told += asked(tools, while_they_live())
        new.close()
        settle([back], 6)
        told += asked(tools, while_they_live())
        back.close()
        return told + asked(tools, afterwards())


def joined(bootstrap: str, name: str, protocol: str, others: list[Consumer]) -> Consumer:
    """Another member, once the partitions are shared with it."""
    member = consumer(bootstrap, "app", client_id=name, group_protocol=protocol)
    member.subscribe(["orders"])
    settle([*others, member], 6)
    return member


def test_tools_say_of_groups_in_an_upgrade_what_they_say_at_a_real_broker(tmp_path: Path) -> None:
    """Classic, mixed, new, mixed again, classic again: lists, descriptions, refusals, offsets."""
    with Broker(tmp_path, dict(QUICK)) as broker:
        theirs = migration(broker.bootstrap)
    with serving("--port", "0", *OPTIONS) as ready:
        ours = migration(ready["bootstrap"])

    for call, said in zip(theirs, ours, strict=True):
        assert said == call
