"""Failing programs become small, and scripts of them can be run again."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.differ import sides
from coordinator_sim_conformance.differ.comparison import Difference
from coordinator_sim_conformance.differ.loop import Exchange, Plan, run
from coordinator_sim_conformance.differ.references import REFERENCES
from coordinator_sim_conformance.differ.scripts import play, read_script, write_script
from coordinator_sim_conformance.differ.shrinking import Shrinker, units_of
from coordinator_sim_conformance.differ.sides import LinesProcess, NoAnswer, Simulator
from coordinator_sim_conformance.differ.story import tell

Json = dict[str, Any]
KAFKA = REFERENCES["kafka-4.4.0"]
OURS = (sys.executable, "-m", "coordinator_sim", "lines")

BROKEN = """
import sys, json
from coordinator_sim.harness.lines import Lines
lines = Lines()
for line in sys.stdin.buffer:
    answer = json.loads(lines.answer_line(line))
    for reply in answer.get("replies", ()):
        if reply["api"] == "Heartbeat" and reply["data"]["errorCode"] == 27:
            reply["data"]["errorCode"] = 22
    print(json.dumps(answer), flush=True)
"""
"""A coordinator that gives a rebalance another name."""


def test_the_simulator_equals_itself() -> None:
    """Through pipes and in this process: no difference in some programs of all requests."""
    plan = Plan(reference=KAFKA, steps=700, seed=3, program_steps=350)
    seen: list[int] = []
    with LinesProcess(OURS) as process:
        outcome = run(plan, Simulator("4.4"), process, seen.append)
    assert [outcome.failure, outcome.steps, outcome.programs] == [None, 700, 2]
    assert seen[-1] <= 700
    assert outcome.steps_per_second > 0


def test_a_broken_coordinator_is_found_and_its_program_made_small(tmp_path: Path) -> None:
    """The first difference is told, and a script of a few commands still shows it."""
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    plan = Plan(reference=KAFKA, steps=20_000, seed=1)
    ours = Simulator("4.4")
    with LinesProcess((sys.executable, str(script))) as process:
        failure = run(plan, ours, process, lambda _: None).failure
        assert failure is not None
        difference = failure.difference
        assert [difference.ours, difference.theirs, difference.what] == [27, 22, "Heartbeat"]

        def trial(commands: Sequence[Json]) -> tuple[int, Difference | None]:
            exchanges, found = play(commands, ours, process)
            return len(exchanges), found

        small = Shrinker(trial, difference.signature).shrink(failure.exchanges)
        assert small[0]["op"] == "init"
        assert len(small) <= 8
        path = tmp_path / "out" / "small.jsonl"
        write_script(path, small)
        exchanges, again = play(read_script(path), ours, process)
    assert again is not None
    assert again.signature == difference.signature
    lines = list(tell(exchanges, again, "broken"))
    assert any("differs in replies" in line for line in lines)
    assert any(line.strip() == "broken: 22" for line in lines)


def test_a_program_that_falls_silent_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has not answered is dropped."""
    monkeypatch.setattr(sides, "_ANSWER_TIMEOUT_S", 0.5)
    code = "while True: print(end=input().replace('[]', '').replace('{}', '{}\\n'), flush=True)"
    with LinesProcess((sys.executable, "-c", code)) as process:
        process.send([b"[]", b"[]"])
        with pytest.raises(NoAnswer, match="has not answered for"):
            process.receive()
        process.restart()
        assert process.answer({}) == {}


def test_going_on_counts_the_kinds(tmp_path: Path) -> None:
    """After a difference the next program is run, and kinds are counted with their seeds."""
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    plan = Plan(reference=KAFKA, steps=6_000, seed=1, keeps_going=True)
    with LinesProcess((sys.executable, str(script))) as process:
        outcome = run(plan, Simulator("4.4"), process, lambda _: None)
    assert list(outcome.kinds) == ["Heartbeat:replies.data.errorCode"]
    assert outcome.steps == 6_000
    assert len(outcome.kinds["Heartbeat:replies.data.errorCode"]) > 1


def test_an_id_goes_with_the_join_that_drew_it() -> None:
    """Cutting a program does not rename its members: drawn ids are scripted before their joins."""
    uuid = "00000000-0000-4000-8000-000000000001"
    join = {"op": "call", "api": "JoinGroup", "id": 7}
    reply = {"id": 7, "api": "JoinGroup", "data": {"memberId": f"c-{uuid}"}}
    wait = {"op": "advance", "ms": 3}
    exchanges = [Exchange(join, {}, {}), Exchange(wait, {"replies": [reply]}, {})]
    assert units_of(exchanges) == [({"op": "uuids", "next": [uuid]}, join), (wait,)]


def test_a_core_that_breaks_down_is_a_difference() -> None:
    """An exception in our core is an answer like others: an error, with its place."""
    broken = Simulator("4.4")
    broken.answer({"op": "init"})
    broken._lines._harness = None
    broken._lines._profile = None  # type: ignore[assignment] # breaks the next init
    answer = broken.answer({"op": "init", "profile": "4.4", "config": {}, "startMs": 1})
    assert "error" not in answer
    broken._lines = None  # type: ignore[assignment] # nothing works any more
    assert "the simulator broke down: AttributeError" in broken.answer({"op": "stats"})["error"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no commands"),
        ("\n\n{", "line 3: "),
        ("[]", "line 1: wants a JSON object with an op"),
        ('{"op": 3}', "line 1: wants a JSON object with an op"),
    ],
)
def test_a_file_that_is_no_script_is_named(tmp_path: Path, text: str, words: str) -> None:
    """With the line that is wrong."""
    path = tmp_path / "s.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_script(path)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(3)", "ended with exit code 3"),
        ("print('hello')", "answered b'hello"),
        ("print('[]')", "wants an object"),
    ],
)
def test_a_side_that_does_not_speak_the_protocol_is_named(code: str, words: str) -> None:
    """A program that ends or answers something else is an error, not a difference."""
    with (
        LinesProcess((sys.executable, "-c", f"input(); {code}")) as process,
        pytest.raises(DataError, match=words),
    ):
        process.answer({"op": "stats"})
