"""Offsets of a sink by REST: those of its consumer group, in the words of a real worker."""

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    DeleteGroup,
    DeleteGroupOffsets,
    HttpRequest,
    HttpResponse,
    ListGroupOffsets,
)
from coordinator_sim.kafka.resources import TopicPartition
from tests.unit.connect.rest_bench import error, shown
from tests.unit.connect.worker_bench import WorkerBench

SINK = {"connector.class": "FileStreamSink", "file": "out.txt", "topics": "t"}
T0 = TopicPartition("t", 0)
TARGET = "/connectors/snk/offsets"
REFUSED = Path(__file__).with_name("refused_offsets.jsonl")
"""Offsets of another shape, and Kafka's message of each."""


def request(method: str, target: str, body: object = None) -> HttpRequest:
    """A request with a JSON body."""
    headers = {} if body is None else {"content-type": "application/json"}
    data = b"" if body is None else json.dumps(body).encode()
    return HttpRequest(method=method, target=target, headers=headers, body=data)


def stopped_sink(**settings: str) -> WorkerBench:
    """A worker with a stopped sink, whose provider `p` has the value `mine` for every key."""
    bench = WorkerBench(providers={"p": lambda _, keys: dict.fromkeys(keys, "mine")}).start()
    bench.run(1_000)
    state = {"name": "snk", "config": {**SINK, **settings}, "initial_state": "STOPPED"}
    assert bench.ask(request("POST", "/connectors", state)).status == 201
    bench.run(5_000)
    return bench


def alter(bench: WorkerBench, partition: object, offset: object) -> HttpResponse:
    """The answer to a request to alter one offset."""
    body = {"offsets": [{"partition": partition, "offset": offset}]}
    return bench.ask(request("PATCH", TARGET, body))


def asked_of_the_group(bench: WorkerBench) -> list[Any]:
    """What the group's coordinator was asked."""
    kinds = (ListGroupOffsets, AlterGroupOffsets, DeleteGroupOffsets, DeleteGroup)
    return [effect for effect in bench.asked if isinstance(effect, kinds)]


def test_offsets_of_a_sink_are_read_altered_and_reset() -> None:
    """Numbers may be texts; null deletes one offset; a reset deletes the group."""
    bench = stopped_sink()
    partition = {"kafka_topic": "t", "kafka_partition": "0"}
    done = "The offsets for this connector have been altered successfully"
    assert shown(alter(bench, partition, {"kafka_offset": "12"}))["body"] == {"message": done}
    bench.group_offsets = {T0: 12}
    assert shown(bench.ask(request("GET", TARGET)))["body"] == {
        "offsets": [
            {
                "partition": {"kafka_topic": "t", "kafka_partition": 0},
                "offset": {"kafka_offset": 12},
            }
        ]
    }
    alter(bench, partition, None)
    bench.ask(request("DELETE", TARGET))
    said = [(type(each).__name__, each.group_id) for each in asked_of_the_group(bench)]
    assert said == [
        ("AlterGroupOffsets", "connect-snk"),
        ("ListGroupOffsets", "connect-snk"),
        ("DeleteGroupOffsets", "connect-snk"),
        ("ListGroupOffsets", "connect-snk"),
        ("DeleteGroup", "connect-snk"),
    ]
    assert asked_of_the_group(bench)[0].offsets == {T0: 12}


@pytest.mark.parametrize("line", REFUSED.read_text(encoding="utf-8").splitlines())
def test_offsets_of_another_shape_are_refused(line: str) -> None:
    """The group is not asked."""
    bench = stopped_sink()
    case = json.loads(line)
    assert shown(alter(bench, case["partition"], case["offset"])) == error(400, case["message"])
    assert asked_of_the_group(bench) == []


def test_a_group_with_members_keeps_its_offsets() -> None:
    """The message says what to do; a group that is gone already counts as reset."""
    bench = stopped_sink()
    bench.errors[DeleteGroup] = "GroupNotEmptyException"
    answer = shown(bench.ask(request("DELETE", TARGET)))
    assert answer["status"] == 500
    assert answer["body"]["message"].startswith(
        "Failed to reset consumer group offsets for connector snk either because its tasks haven't "
        "stopped completely yet or the connector was resumed before the request to reset its "
    )
    bench.errors[DeleteGroup] = "GroupIdNotFoundException"
    assert bench.ask(request("DELETE", TARGET)).status == 200


def test_the_group_may_be_named_by_the_connector() -> None:
    """An override of the consumer's group id counts."""
    bench = stopped_sink()
    config = {**SINK, "consumer.override.group.id": "mine"}
    bench.ask(request("PUT", "/connectors/snk/config", config))
    bench.run(1_000)
    bench.ask(request("GET", TARGET))
    assert asked_of_the_group(bench)[-1].group_id == "mine"


def test_a_group_that_cannot_be_asked_is_an_error() -> None:
    """A failed ListConsumerGroupOffsets is a 500 without the cause."""
    bench = stopped_sink()
    bench.errors[ListGroupOffsets] = "GroupAuthorizationException"
    assert shown(bench.ask(request("GET", TARGET))) == error(
        500, "Failed to retrieve consumer group offsets for sink connector snk"
    )


def test_a_reference_may_stand_for_the_group_of_a_sink() -> None:
    """Its offsets are those of the group that the provider names."""
    bench = stopped_sink(**{"consumer.override.group.id": "${p:group}"})
    bench.ask(request("GET", TARGET))
    (listed,) = asked_of_the_group(bench)
    assert listed.group_id == "mine"
