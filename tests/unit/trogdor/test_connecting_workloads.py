"""ConnectionStress and SustainedConnection, with a cluster in memory."""

import math
from collections import deque
from typing import Any

import pytest

from coordinator_sim.trogdor import generator_specs, jackson, workload_specs
from coordinator_sim.trogdor.agent import WorkFailed
from coordinator_sim.trogdor.specs import NoOpTaskSpec, TaskSpec
from coordinator_sim.trogdor.workloads.clients import Workload
from coordinator_sim.trogdor.workloads.registry import MOST_CLIENTS, workload_of
from tests.unit.trogdor.small_world import START_MS, Heard, SmallWorld, began

FETCH = {"action": workload_specs.ConnectionStressAction.FETCH_METADATA}
GENERATORS = {
    "key_generator": generator_specs.SequentialPayloadGenerator(size=4),
    "value_generator": generator_specs.ConstantPayloadGenerator(size=10),
}


def stress(world: SmallWorld, **settings: Any) -> tuple[Workload, Heard]:  # noqa: ANN401 - of any type
    """A ConnectionStress that has begun, at 40 connections a second over two threads."""
    spec = workload_specs.ConnectionStressSpec(
        **{"target_connections_per_sec": 40, "num_threads": 2, **settings}
    )
    return began(world, lambda heard: workload_of("t", spec, world, heard))


def sustain(world: SmallWorld, **settings: Any) -> tuple[Workload, Heard]:  # noqa: ANN401 - of any type
    """A SustainedConnection that has begun, of two clients of each kind."""
    counts = dict.fromkeys(
        ("producer_connection_count", "consumer_connection_count", "metadata_connection_count"), 2
    )
    spec = workload_specs.SustainedConnectionSpec(
        **{**counts, "topic_name": "foo", "refresh_rate_ms": 1_000, "num_threads": 3, **settings}
    )
    return began(world, lambda heard: workload_of("t", spec, world, heard))


def sustained(
    producers: tuple[int, int], consumers: tuple[int, int], admins: tuple[int, int]
) -> list[int]:
    """What a status says of open and of failed connections."""
    return [*producers, *consumers, *admins, 0]


def counts_of(status: dict[str, int]) -> list[int]:
    """What a status says but for its instant."""
    return list(status.values())[:-1]


# -- ConnectionStress ------------------------------------------------------------------------------


def test_connections_are_counted_each_five_seconds() -> None:
    """Each of two threads opens 20 a second; the rate of the first status is no number."""
    world = SmallWorld()
    _, heard = stress(world)
    world.run_until(10_500)

    assert heard.instants == [0, 5_000, 10_000]
    assert math.isnan(heard.statuses[0]["connectsPerSec"])
    assert jackson.text(heard.statuses[0]) == (
        '{"totalConnections":0,"totalFailedConnections":0,"connectsPerSec":"NaN"}'
    )
    total = heard.statuses[1]["totalConnections"]
    assert 200 <= total <= 204
    assert heard.statuses[1] == {
        "totalConnections": total,
        "totalFailedConnections": 0,
        "connectsPerSec": total / 5,
    }
    assert set(world.done) == {"connect within 500"}
    assert heard.ending is None


def test_stopped_stress_tells_its_last_status() -> None:
    """Before it halts."""
    world = SmallWorld()
    workload, heard = stress(world, bootstrap_servers="b:9092")
    world.run_until(1_000)
    world.finish(workload.end())

    assert heard.ending == ""
    assert heard.statuses[-1]["totalConnections"] == len(world.done)
    assert world.settings[0] == {"bootstrap.servers": "b:9092"}
    told = len(world.done)
    world.run_until(5_000)
    assert len(world.done) == told


def test_refused_connections_are_failures() -> None:
    """They count as connections too."""
    world = SmallWorld()
    world.brokers_refuse = True
    _, heard = stress(world)
    world.run_until(5_500)

    status = heard.statuses[-1]
    assert status["totalFailedConnections"] == status["totalConnections"] > 0


def test_metadata_is_asked_for_by_a_client_of_its_own() -> None:
    """Each connection is a client that asks for the brokers and is closed."""
    world = SmallWorld()
    world.call_failures = {"describe": deque(["", "no broker", ""] + [""] * 1_000)}
    _, heard = stress(world, **FETCH, num_threads=1, target_connections_per_sec=10)
    world.run_until(5_050)

    assert heard.statuses[-1]["totalConnections"] >= 50
    assert heard.statuses[-1]["totalFailedConnections"] == 1
    assert world.done[:3] == ["describe cluster", "close admin", "close admin"]


def test_refused_settings_end_the_stress() -> None:
    """The error is told, and no thread goes on."""
    for action in workload_specs.ConnectionStressAction:
        world = SmallWorld()
        world.refused_clients = {"connection": "SSL", "admin": "SSL"}
        _, heard = stress(world, action=action)
        world.run_until(2_000)
        assert heard.ending == "SSL"
        assert len(world.settings) <= 2


# -- SustainedConnection ---------------------------------------------------------------------------


def test_clients_stay_connected_and_are_used() -> None:
    """Each client is used once a second; a status comes each five seconds."""
    world = SmallWorld(foo=3)
    workload, heard = sustain(world, **GENERATORS)
    world.run_until(10_500)

    assert heard.instants == [0, 5_000, 10_000]
    assert counts_of(heard.statuses[0]) == sustained((0, 0), (0, 0), (0, 0))
    assert counts_of(heard.statuses[-1]) == sustained((2, 0), (2, 0), (2, 0))
    assert heard.statuses[-1]["updatedMs"] == START_MS + 10_000
    assert 16 <= len(world.sent) <= 22
    assert sorted(dict.fromkeys(each.partition for each in world.sent)) == [0, 1, 2]
    assert len(world.settings) == 6

    world.finish(workload.end())
    assert heard.ending == ""
    assert sorted(world.done[-6:]) == sorted(
        f"close {kind}" for kind in ("producer", "consumer", "admin") for _ in range(2)
    )


def test_settings_of_clients_that_stay_connected() -> None:
    """Consumers read one record at a time from the end; all may be overridden."""
    world = SmallWorld(foo=1)
    sustain(
        world,
        **GENERATORS,
        bootstrap_servers="b:9092",
        common_client_conf={"client.id": "c"},
        producer_conf={"client.id": "p"},
        consumer_conf={"max.poll.records": "2"},
        admin_client_conf={"client.id": "unused"},
    )
    world.run_until(5_000)

    servers = {"bootstrap.servers": "b:9092"}
    assert world.settings[0] == servers | {"client.id": "p"}
    reading = {"auto.offset.reset": "latest", "max.poll.records": "2", "fetch.max.bytes": 1_024}
    assert servers | reading | {"client.id": "c"} in world.settings
    assert world.settings.count(servers | {"client.id": "c"}) == 2


def test_producers_without_generators_fail_and_are_made_again() -> None:
    """Each use fails and is counted; the others go on."""
    world = SmallWorld(foo=1)
    _, heard = sustain(world)
    world.run_until(5_500)

    producers, failures, *others = counts_of(heard.statuses[-1])
    assert producers == 0
    assert failures >= 8
    assert others == sustained((2, 0), (2, 0), (0, 0))[:5]
    assert heard.ending is None


def test_clients_that_fail_are_closed_and_made_again() -> None:
    """Each kind counts its own failures."""
    world = SmallWorld(foo=1)
    world.call_failures = {
        "poll": deque(["broken"] + [""] * 99),
        "describe": deque(["", "broken", "broken"] + [""] * 99),
    }
    world.send_failures = deque(["", "", "broken"])
    _, heard = sustain(world, **GENERATORS)
    world.run_until(10_500)

    assert counts_of(heard.statuses[-1]) == sustained((2, 1), (2, 1), (2, 2))
    assert len(world.settings) == 6 + 4


def test_clients_without_their_topic_fail() -> None:
    """Producers and consumers fail where there is no such topic; admin clients do not need it."""
    world = SmallWorld()
    _, heard = sustain(world, **GENERATORS)
    world.run_until(5_500)

    producers, producers_failed, consumers, consumers_failed, *admins = counts_of(
        heard.statuses[-1]
    )
    assert (producers, consumers) == (0, 0)
    assert producers_failed >= 8
    assert consumers_failed >= 8
    assert admins == [2, 0, 0]


# -- others ----------------------------------------------------------------------------------------


def test_other_specs_are_no_workloads() -> None:
    """There are no share groups; a NoOp needs no clients."""
    world = SmallWorld()
    heard = Heard(world)
    assert workload_of("t", workload_specs.ShareConsumeBenchSpec(), world, heard) is None
    assert workload_of("t", NoOpTaskSpec(), world, heard) is None


@pytest.mark.parametrize(
    "spec",
    [
        workload_specs.ConnectionStressSpec(num_threads=MOST_CLIENTS + 1),
        workload_specs.ConsumeBenchSpec(threads_per_worker=MOST_CLIENTS + 1),
        workload_specs.SustainedConnectionSpec(producer_connection_count=MOST_CLIENTS),
        workload_specs.SustainedConnectionSpec(consumer_connection_count=2**31 - 1),
        workload_specs.SustainedConnectionSpec(
            metadata_connection_count=MOST_CLIENTS, num_threads=2
        ),
    ],
)
def test_more_threads_and_connections_than_a_host_has_are_refused(spec: TaskSpec) -> None:
    """None of them is started; a connection's thread counts too."""
    world = SmallWorld()

    with pytest.raises(WorkFailed, match=r"\d+ threads and connections; the most .* are 5000"):
        workload_of("t", spec, world, Heard(world))
