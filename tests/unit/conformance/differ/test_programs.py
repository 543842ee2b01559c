"""Random programs: what they draw, and that a seed is enough to draw it again."""

from collections import Counter
from typing import Any

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.differ.programs import LEFT_OUT, Program
from coordinator_sim_conformance.differ.references import REFERENCES, Reference, reference_named
from coordinator_sim_conformance.differ.sides import Simulator

Json = dict[str, Any]
KAFKA = REFERENCES["kafka-4.4.0"]


def drawn(
    seed: int, steps: int = 300, reference: Reference = KAFKA, without: tuple[str, ...] = ()
) -> list[tuple[Json, Json]]:
    """The commands of a program and our answers."""
    program = Program(reference, seed, without)
    ours = Simulator(reference.profile)
    done = [(command, ours.answer(command)) for command in program.opening()]
    for number in range(len(done), steps):
        command = program.next(number)
        answer = ours.answer(command)
        program.learn(answer)
        done.append((command, answer))
    return done


def test_one_seed_is_one_program() -> None:
    """The same seed draws the same commands, another one others."""
    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(6)


def test_programs_reach_every_api_in_every_version() -> None:
    """A few worlds send all requests in all versions the reference has, and most events."""
    asked: Counter[tuple[str, int]] = Counter()
    ops: Counter[str] = Counter()
    for seed in range(25):
        for command, _ in drawn(seed):
            ops[command["op"]] += 1
            if command["op"] == "call":
                asked[command["api"], command["v"]] += 1
    wanted = {
        (api, version)
        for api, (low, high) in KAFKA.versions.items()
        for version in range(low, high + 1)
    }
    assert set(asked) == wanted
    assert set(ops) == {
        *("init", "topics", "call", "advance", "fail", "hold", "commit", "elect", "resign"),
        *("append", "endTxn"),
    }


def test_groups_come_to_life() -> None:
    """Programs are not noise: generations begin, are synced and heartbeat in peace."""
    fine: Counter[str] = Counter()
    for seed in range(30):
        for _, answer in drawn(seed):
            for reply in answer.get("replies", ()):
                if reply.get("data", {}).get("errorCode") == 0:
                    fine[reply["api"]] += 1
    assert fine["JoinGroup"] > 600
    assert fine["SyncGroup"] > 300
    assert fine["Heartbeat"] > 150


def test_what_is_left_out_does_not_come() -> None:
    """`--without` names requests, events and features."""
    commands = [command for command, _ in drawn(3, without=("JoinGroup", "hold", "endTxn"))]
    apis = {command.get("api") for command in commands}
    ops = {command["op"] for command in commands}
    assert "JoinGroup" not in apis
    assert not ops & {"hold", "endTxn"}
    assert {"JoinGroup", "hold", "endTxn", "retention", "topic-ids"} <= set(LEFT_OUT)


@pytest.mark.parametrize("reference", REFERENCES.values(), ids=lambda each: each.name)
def test_the_simulator_understands_every_command(reference: Reference) -> None:
    """No command of a program is one that the line protocol cannot run."""
    for seed in range(8):
        errors = [answer for _, answer in drawn(seed, reference=reference) if "error" in answer]
        assert errors == []


def test_an_unknown_reference_names_the_known_ones() -> None:
    """The message lists what can be asked."""
    with pytest.raises(ConfigError, match=r"unknown reference 'kafka-1\.0': use one of kafka-4"):
        reference_named("kafka-1.0")
