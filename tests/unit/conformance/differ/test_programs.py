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
    seed: int,
    steps: int = 300,
    reference: Reference = KAFKA,
    without: tuple[str, ...] = (),
    world: str = "classic",
) -> list[tuple[Json, Json]]:
    """The commands of a program and our answers."""
    program = Program(reference, seed, without, world)
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
        if not api.startswith(("ConsumerGroup", "StreamsGroup")) and "ShareGroup" not in api
        for version in range(low, high + 1)
    }
    assert set(asked) == wanted
    assert set(ops) == {
        *("init", "topics", "call", "advance", "fail", "hold", "commit", "elect", "resign"),
        *("append", "endTxn"),
    }


def test_consumer_groups_come_to_life() -> None:
    """Members of consumer groups join, are given partitions, give them up, and are fenced."""
    answers: Counter[int] = Counter()
    states: Counter[int] = Counter()
    for seed in range(8):
        for command, answer in drawn(seed, world="consumer"):
            for reply in answer.get("replies", ()):
                if reply["api"] == "ConsumerGroupHeartbeat":
                    answers[reply["data"]["errorCode"]] += 1
            for record in answer.get("records", ()):
                if record.get("key", {}).get("type") == 8 and record["value"] is not None:
                    states[record["value"]["data"]["state"]] += 1
            assert "error" not in answer or command["op"] != "call", answer
    assert {0, 25, 42, 69, 81, 110, 111} <= set(answers)
    assert answers[0] > sum(count for error, count in answers.items() if error)
    assert set(states) == {0, 1, 2}


def test_groups_change_their_type() -> None:
    """Classic groups with members become consumer groups, and these classic ones again."""
    upgrades = downgrades = 0
    for seed in range(8):
        for command, answer in drawn(seed, world="migration"):
            types = {
                (record["key"].get("type"), record["value"] is None)
                for record in answer.get("records", ())
                if isinstance(record.get("key"), dict)
            }
            upgrades += {(2, True), (5, False), (7, False)} <= types
            downgrades += {(3, True), (2, False)} <= types
            assert "error" not in answer or command["op"] != "call", answer
    assert upgrades > 8
    assert downgrades > 8


def test_share_groups_come_to_life() -> None:
    """Members of share groups are given partitions, and the share coordinator does its part."""
    answers: Counter[int] = Counter()
    calls: Counter[str] = Counter()
    records: Counter[int] = Counter()
    for seed in range(8):
        for command, answer in drawn(seed, world="share"):
            for reply in answer.get("replies", ()):
                if reply["api"] == "ShareGroupHeartbeat":
                    answers[reply["data"]["errorCode"]] += 1
            calls.update(call["call"] for call in answer.get("persister", ()))
            records.update(
                each["key"]["type"] for each in answer.get("records", ()) if "key" in each
            )
            assert "error" not in answer or command["op"] != "call", answer
    assert {0, 25, 42, 69, 81, 110} <= set(answers)
    assert answers[0] > sum(answers.values()) / 3
    assert set(calls) == {"initialize", "delete"}
    assert {10, 11, 12, 13, 14, 15} <= set(records)


def test_streams_groups_come_to_life() -> None:
    """Members of streams groups join, are given tasks and copies, give them up, and are fenced."""
    answers: Counter[int] = Counter()
    statuses: Counter[int] = Counter()
    states: Counter[int] = Counter()
    for seed in range(12):
        for command, answer in drawn(seed, world="streams"):
            for reply in answer.get("replies", ()):
                if reply["api"] == "StreamsGroupHeartbeat":
                    answers[reply["data"]["errorCode"]] += 1
                    statuses.update(each["statusCode"] for each in reply["data"]["status"])
            # What another leader wrote is no answer of ours.
            written = answer.get("records", ()) if command["op"] != "append" else ()
            for record in written:
                if record.get("key", {}).get("type") == 22 and record["value"] is not None:
                    states[record["value"]["data"]["state"]] += 1
            assert "error" not in answer or command["op"] != "call", answer
    assert {0, 25, 42, 69, 81, 110, 111} <= set(answers)
    assert answers[0] > 3 * max(count for error, count in answers.items() if error)
    assert {1, 2, 3} <= set(states)
    assert set(statuses) == set(range(7))


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
