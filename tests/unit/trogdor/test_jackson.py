"""JSON is read and written as Kafka 4.3.1's own JsonUtil did, recorded in tests/data/trogdor."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from coordinator_sim.trogdor import jackson, messages
from coordinator_sim.trogdor.generator_specs import PayloadGenerator
from coordinator_sim.trogdor.messages import (
    SPEC_CLASSES,
    AgentStatusResponse,
    CreateTaskRequest,
    StopTaskRequest,
)
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import NoOpTaskSpec, SampleTaskSpec, TaskSpec
from coordinator_sim.trogdor.states import TaskPhase, TaskState, WorkerPhase, WorkerState

RECORDED = Path(__file__).resolve().parents[2] / "data" / "trogdor" / "jackson.jsonl"
NO_OP = "org.apache.kafka.trogdor.task.NoOpTaskSpec"
SAMPLE = "org.apache.kafka.trogdor.task.SampleTaskSpec"
SAID = {"kind", "body", "positions", "payloads"}
"""What of an answer is not about reading and writing."""

KINDS: dict[str, type[Struct]] = {
    "TaskSpec": TaskSpec,
    "PayloadGenerator": PayloadGenerator,
    "TaskState": TaskState,
    "WorkerState": WorkerState,
}


def answers() -> list[dict[str, Any]]:
    """What Kafka made of each text."""
    return [json.loads(line) for line in RECORDED.read_text("utf-8").strip().split("\n")]


def ours(answer: dict[str, Any]) -> dict[str, Any]:
    """What we make of the text of an answer, in the form of the answer."""
    kind = KINDS.get(answer["kind"]) or getattr(messages, answer["kind"])
    found = {key: answer[key] for key in answer if key in SAID}
    try:
        value = jackson.read(answer["body"].encode(), kind)
    except TrogdorRefusal as refusal:
        return found | {"code": refusal.code}
    found |= {"code": 200, "written": jackson.text(value)}
    return found | ({"pretty": jackson.pretty(value)} if "pretty" in answer else {})


def test_every_text_is_read_refused_and_written_as_kafka_does() -> None:
    """Codes, compact and pretty texts equal Kafka's, for each of the recorded texts."""
    recorded = answers()

    assert len(recorded) >= 900
    assert [one for one in recorded if ours(one) != one] == []


def test_every_stock_spec_was_recorded() -> None:
    """No class of spec is without recorded answers, but the class of Kafka's tests."""
    recorded = {json.loads(one["written"])["class"] for one in answers() if is_spec(one)}

    assert recorded == set(SPEC_CLASSES) - {SAMPLE}


def is_spec(answer: dict[str, Any]) -> bool:
    """Whether a spec was read."""
    return bool(answer["kind"] == "TaskSpec" and answer["code"] == 200)


@pytest.mark.parametrize("shape", ["{}", '{"startMs":5}', '{"startMs":5,"class":"a.B"}', "[]"])
def test_a_spec_without_a_known_class_is_refused(shape: str) -> None:
    """A09: 501 for a class that is missing or unknown; a list must begin with one (400)."""
    with pytest.raises(TrogdorRefusal) as refused:
        jackson.read(f'{{"id":"a","spec":{shape}}}', CreateTaskRequest)

    assert refused.value.code == (400 if shape == "[]" else 501)


def test_an_unknown_property_is_refused() -> None:
    """A10: 400 for a property that the class does not have, also with another spelling."""
    for name in ("bogus", "start_ms", "StartMs"):
        with pytest.raises(TrogdorRefusal, match=name) as refused:
            jackson.read(f'{{"class":"{NO_OP}","{name}":1}}', TaskSpec)
        assert refused.value.code == 400


def test_empty_collections_are_omitted() -> None:
    """H05: an agent without workers says only when it started."""
    assert jackson.write(messages.TasksResponse()) == b"{}"
    assert jackson.text(AgentStatusResponse(server_start_ms=5)) == '{"serverStartMs":5}'


def test_an_offset_is_shown_as_start_offset() -> None:
    """J22: a spec says `offset`, and is shown with `startOffset`."""
    spec = jackson.read('{"type":"sequential","size":8,"offset":1}', PayloadGenerator)

    assert jackson.text(spec) == '{"type":"sequential","size":8,"startOffset":1}'
    assert jackson.read(jackson.text(spec), PayloadGenerator) == spec


def test_a_sample_task_without_extras_is_kafkas_own() -> None:
    """What Kafka's test class does not know is not written unless it is set."""
    plain = SampleTaskSpec(start_ms=1, duration_ms=2, node_to_exit_ms={"n": 3}, error="e")
    text = f'{{"class":"{SAMPLE}","startMs":1,"durationMs":2,"nodeToExitMs":{{"n":3}},"error":"e"}}'

    assert jackson.text(plain) == text
    assert jackson.read(text, TaskSpec) == plain


def test_extras_of_a_sample_task_survive() -> None:
    """A missing message of an exception stays null, unlike a missing setting."""
    spec = SampleTaskSpec(
        stop_takes_ms=5,
        stop_throws={"node01": None, "node02": ""},
        status_script={"10": {"a": None}, "20": "x"},
    )

    assert jackson.read(jackson.write(spec), TaskSpec) == spec


def test_an_entry_of_a_map_that_is_empty_is_omitted() -> None:
    """Settings that are empty texts stay in memory and are not written."""
    text = '{"class":"org.apache.kafka.trogdor.workload.ConsumeBenchSpec","consumerConf":{"a":""}}'
    spec = jackson.read(text, TaskSpec)

    assert getattr(spec, "consumer_conf") == {"a": ""}  # noqa: B009 (a family is read)
    assert "consumerConf" not in jackson.tree(spec)


def test_a_state_without_its_spec_is_refused() -> None:
    """A state of a task or a worker needs its spec: 400."""
    with pytest.raises(TrogdorRefusal, match="needs spec") as refused:
        jackson.read('{"state":"PENDING"}', TaskState)

    assert refused.value.code == 400


def test_a_tree_is_read_as_its_text() -> None:
    """Values that were parsed elsewhere are read by the same rules."""
    spec = NoOpTaskSpec(start_ms=5)

    assert jackson.from_tree({"class": NO_OP, "startMs": "5"}, TaskSpec) == spec
    assert jackson.read_tree(b'{"a":[1,2.5,"x",null], "a":1} rest') == {"a": 1}


def test_a_class_of_a_family_reads_only_itself() -> None:
    """Another class of the same family is refused where one is expected."""
    with pytest.raises(TrogdorRefusal) as refused:
        jackson.read(f'{{"class":"{SAMPLE}"}}', NoOpTaskSpec)

    assert refused.value.code == 501


def test_bytes_that_are_no_text_are_refused() -> None:
    """Broken UTF-8 is a failure (500); UTF-16 is read."""
    with pytest.raises(TrogdorRefusal) as refused:
        jackson.read(b'{"id":"\xff"}', StopTaskRequest)

    assert refused.value.code == 500
    assert jackson.read('{"id":"é"}'.encode("utf-16-le"), StopTaskRequest).id == "é"


def test_what_is_no_json_value_is_not_written() -> None:
    """A set in a status is a mistake of ours, not silently a list."""
    with pytest.raises(TypeError):
        jackson.text({"a": {1, 2}})


def test_states_are_written_with_the_fields_of_the_state() -> None:
    """A pending task has no instants, a worker that starts no status."""
    spec = NoOpTaskSpec()
    task = jackson.tree(TaskState(state=TaskPhase.PENDING, spec=spec, started_ms=5))
    worker = jackson.tree(WorkerState(state=WorkerPhase.STARTING, task_id="t", spec=spec))

    assert list(task) == ["state", "spec", "status"]
    assert list(worker) == ["state", "taskId", "spec"]


def test_null_inside_a_list_of_names_is_refused() -> None:
    """400 at once, where Java would fail later."""
    with pytest.raises(TrogdorRefusal, match="null inside a list") as refused:
        jackson.read(
            '{"class":"org.apache.kafka.trogdor.workload.ExternalCommandSpec","command":[null]}',
            TaskSpec,
        )

    assert refused.value.code == 400


def test_a_status_may_be_deep_but_not_endless() -> None:
    """100 containers inside one another are read and written, one more is refused."""
    deep, deeper = "[" * 100 + "]" * 100, "[" * 101 + "]" * 101

    assert jackson.text(jackson.read_tree(deep)) == deep
    assert jackson.read_tree(jackson.pretty(jackson.read_tree(deep))) == jackson.read_tree(deep)
    with pytest.raises(TrogdorRefusal, match="more than 100"):
        jackson.read_tree(deeper)
