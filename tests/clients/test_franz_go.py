"""franz-go at `coordinator-sim serve`: groups, exactly-once sessions, kadm."""

import pytest

from coordinator_sim_pytest.server import ServedKafka
from tests.clients.franz import FranzConsumer, franz, wait_until
from tests.clients.librdkafka import whole_topic

pytestmark = pytest.mark.real_kafka

PARTITIONS = 6
EVERY_PROFILE = [
    pytest.param(name, marks=pytest.mark.kafka_profile(name)) for name in ("4.4", "3.9", "0.10.2")
]
MODERN = EVERY_PROFILE[:2]


def capped(profile: str) -> dict[str, str]:
    """The settings that a program for a broker of 0.10.2 has."""
    return {"max_versions": "0.10.2"} if profile == "0.10.2" else {}


@pytest.mark.parametrize("profile", EVERY_PROFILE)
@pytest.mark.parametrize("balancer", ["range", "roundrobin", "cooperative-sticky"])
def test_members_come_and_go_and_each_record_is_read_once(
    kafka_server: ServedKafka, profile: str, balancer: str
) -> None:
    """Alone, then two, then the other alone; a cooperative member keeps what it has."""
    kafka_server.create_topic("t", PARTITIONS)
    bootstrap = kafka_server.bootstrap
    settings = {"topic": "t", "group": "g", "balancer": balancer, **capped(profile)}
    first = FranzConsumer(bootstrap, **settings)
    wait_until(lambda: first.owned == list(range(PARTITIONS)))
    second = FranzConsumer(bootstrap, **settings)
    wait_until(lambda: sorted(first.owned + second.owned) == list(range(PARTITIONS)))
    wait_until(lambda: len(second.owned) == 3)
    franz("produce", bootstrap, topic="t", partitions=6, first=0, count=300, **capped(profile))
    wait_until(lambda: len(first.values + second.values) >= 300)
    assert ([] in first.rebalances) == (balancer != "cooperative-sticky")
    first.close()
    wait_until(lambda: second.owned == list(range(PARTITIONS)))
    franz("produce", bootstrap, topic="t", partitions=6, first=300, count=300, **capped(profile))
    wait_until(lambda: len(first.values + second.values) >= 600)
    second.close()
    found = sorted(int(value) for value in first.values + second.values)
    assert found == list(range(600))
    offsets = kafka_server.wait_for_group("g", "Empty")
    assert offsets["state"] == "Empty"


@pytest.mark.kafka_profile("4.4")
@pytest.mark.parametrize("balancer", ["range", "sticky"])
def test_members_of_the_new_protocol_come_and_go_under_load(
    kafka_server: ServedKafka, balancer: str
) -> None:
    """Alone, two, three, two: records are written at each change, and each is read once."""
    kafka_server.create_topic("t", PARTITIONS)
    bootstrap = kafka_server.bootstrap
    settings = {"topic": "t", "group": "g", "balancer": balancer, "protocol": "consumer"}
    members: list[FranzConsumer] = []
    gone: list[FranzConsumer] = []
    written = 0
    for share in (6, 3, 2):
        members.append(FranzConsumer(bootstrap, **settings))
        franz("produce", bootstrap, topic="t", partitions=6, first=written, count=300)
        written += 300
        wait_until(
            lambda share=share: [len(each.owned) for each in members] == [share] * len(members)
        )
    assert kafka_server.wait_for_group("g", "Stable", members=3)["protocol_name"] == (
        "range" if balancer == "range" else "uniform"
    )
    gone.append(members.pop(0))
    gone[0].close()
    franz("produce", bootstrap, topic="t", partitions=6, first=written, count=300)
    wait_until(lambda: [len(each.owned) for each in members] == [3, 3])
    everybody = [*members, *gone]
    wait_until(lambda: sum(len(each.values) for each in everybody) >= written + 300)
    for each in members:
        each.close()
    found = sorted(int(value) for each in everybody for value in each.values)
    assert found == list(range(written + 300))
    assert kafka_server.wait_for_group("g", "Empty")["state"] == "Empty"


@pytest.mark.parametrize("profile", MODERN)
def test_static_member_that_restarts_disturbs_nobody(
    kafka_server: ServedKafka, profile: str
) -> None:
    """A follower has the same partitions, in the same generation; a leader would rejoin."""
    kafka_server.create_topic("t", PARTITIONS)
    settings = {"topic": "t", "group": "g"}
    leader = FranzConsumer(kafka_server.bootstrap, **settings, instance="a")
    wait_until(lambda: len(leader.owned) == PARTITIONS)
    follower = FranzConsumer(kafka_server.bootstrap, **settings, instance="b")
    wait_until(lambda: len(leader.owned) == len(follower.owned) == 3)
    before = kafka_server.wait_for_group("g", "Stable", members=2)
    owned = follower.owned
    told = [each for each in follower.rebalances if each]
    follower.close()
    again = FranzConsumer(kafka_server.bootstrap, **settings, instance="b")
    wait_until(lambda: len(again.owned) == 3)
    after = kafka_server.wait_for_group("g", "Stable", members=2)
    again_owned = again.owned
    for each in (again, leader):
        each.close()
    assert [again_owned] == [owned] == told, profile
    assert after["generation"] == before["generation"]


@pytest.mark.parametrize("profile", MODERN)
def test_each_record_is_copied_once(kafka_server: ServedKafka, profile: str) -> None:
    """A GroupTransactSession that aborts reads the record again, and commits it then."""
    kafka_server.create_topic("in")
    kafka_server.create_topic("out")
    franz("produce", kafka_server.bootstrap, topic="in", partitions=1, first=0, count=3)
    told = franz("transact", kafka_server.bootstrap, topic="out", source="in", group="g")
    assert told == ["transaction 0 true", "transaction 1 false", "transaction 1 true"], profile
    committed = {"isolation_level": "read_committed"}
    assert whole_topic(kafka_server.bootstrap, "out", 1, 2, **committed) == [b"0", b"1"]


@pytest.mark.parametrize("profile", MODERN)
def test_admin_client(kafka_server: ServedKafka, profile: str) -> None:
    """Topics, partitions, settings, records, a group's lag and its end."""
    told = franz("admin", kafka_server.bootstrap, topic="t", group="g")
    assert told == ["lag 6", "done"], profile
