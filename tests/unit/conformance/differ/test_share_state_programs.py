"""Programs of share coordinators: what they draw, and what of ours they reach."""

from collections import Counter
from typing import Any

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.differ.programs import program_of
from coordinator_sim_conformance.differ.references import REFERENCES
from coordinator_sim_conformance.differ.share_state_programs import SHARE_STATE
from coordinator_sim_conformance.differ.sides import Simulator

Json = dict[str, Any]


def drawn(seed: int, reference: str = "kafka-4.4.0") -> list[tuple[Json, Json]]:
    """The commands of a program and our answers."""
    known = REFERENCES[reference]
    program = program_of(known, seed, world=SHARE_STATE)
    ours = Simulator(known.profile)
    commands = [*program.opening(), *(program.next(number) for number in range(250))]
    return [(command, ours.answer(command)) for command in commands]


def test_one_seed_is_one_program() -> None:
    """The same seed draws the same commands and answers, another one others."""
    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(6)


@pytest.mark.parametrize("reference", ["kafka-4.3.1", "kafka-4.4.0"])
def test_programs_reach_what_a_share_coordinator_does(reference: str) -> None:
    """Every op, every kind of record, cuts of the log, and each of the errors."""
    ops: Counter[str] = Counter()
    records: Counter[tuple[int, bool]] = Counter()
    errors: Counter[ErrorCode] = Counter()
    cuts = 0
    for seed in range(12):
        for command, answer in drawn(seed, reference):
            assert "error" not in answer, (seed, command, answer)
            ops[command["op"]] += 1
            cuts += len(answer.get("deleted", ()))
            for record in answer.get("records", ()):
                records[record["key"]["type"], record["value"] is None] += 1
            for reply in answer.get("replies", ()):
                for topic in reply["data"]["results"]:
                    errors.update(ErrorCode(each["errorCode"]) for each in topic["partitions"])
    assert set(ops) >= {"advance", "call", "fail", "hold", "commit", "elect", "resign", "features"}
    assert set(records) == {(0, False), (0, True), (1, False)}
    assert set(errors) >= {
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    assert cuts > 0
    assert errors[ErrorCode.NONE] * 5 > errors.total()
