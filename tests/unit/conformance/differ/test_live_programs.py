"""Programs for real time: clear of timers, compared up to ids, repeated more slowly."""

from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.differ import live_comparison
from coordinator_sim_conformance.differ.endpoint_play import Heard, Played, with_ids
from coordinator_sim_conformance.differ.explained import DEVIATIONS, all_explanations
from coordinator_sim_conformance.differ.live_reference import reference_of
from coordinator_sim_conformance.differ.references import REFERENCES
from coordinator_sim_conformance.differ.timed_programs import Clearance, drawn, paced, stretched

Json = dict[str, Any]
REQUESTS: Final = 25
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.max.session.timeout.ms": "1800000",
}
SEEDS: Final = st.integers(0, 2**20)


def script_of(seed: int, profile: str = "4.4") -> live_comparison.TimedScript:
    """A program for an endpoint with short sessions."""
    versions = REFERENCES["kafka-4.4.0"].versions
    reference = reference_of("endpoint", profile, versions, SETTINGS)
    return live_comparison.TimedScript.of(drawn(reference, seed, REQUESTS))


def other_coordinator(
    script: live_comparison.TimedScript, profile: str = "4.4", *, is_busy: bool = False
) -> Played:
    """What a correct endpoint answers that draws other member ids; others may use it, too."""
    mine = live_comparison.expected(script, profile, Clearance())
    ids = {
        ours: f"{ours[:-36]}{uuid5(NAMESPACE_OID, f'{ours} {call_id}')}"
        for call_id, ours in mine.drawn.items()
    }
    commands = tuple(
        {**each, "data": with_ids(each["data"], ids)} if "data" in each else each
        for each in script.commands
    )
    uuids = {call_id: ids[ours][-36:] for call_id, ours in mine.drawn.items()}
    theirs = live_comparison.expected(
        live_comparison.TimedScript(commands, uuids), profile, Clearance(), is_busy=is_busy
    )
    heard = {
        reply["id"]: Heard(index, reply["at"] + 15, reply["data"])
        for index, answer in enumerate(theirs.answers)
        for reply in answer.get("replies", ())
    }
    told = {
        ours: theirs.drawn[call_id]
        for call_id, ours in mine.drawn.items()
        if call_id in theirs.drawn
    }
    return Played(heard=heard, ids=told)


def both(script: live_comparison.TimedScript, played: Played) -> live_comparison.Compared:
    """Both sides of a program."""
    mine = live_comparison.expected(script, "4.4", Clearance())
    return live_comparison.compared(script, played, mine.drawn, "4.4", Clearance())


@pytest.mark.property
@given(SEEDS)
def test_no_request_is_raced_by_a_timer(seed: int) -> None:
    """Neither as drawn nor when everything lasts twice as long."""
    script = script_of(seed)
    slower = live_comparison.TimedScript(tuple(stretched(script.commands, 2)))

    assert live_comparison.expected(script, "4.4", Clearance()).clear == len(script.commands)
    assert live_comparison.expected(slower, "4.4", Clearance(2)).clear == len(slower.commands)


@pytest.mark.property
@given(SEEDS, st.booleans())
def test_a_coordinator_that_draws_other_ids_agrees(seed: int, is_busy: bool) -> None:
    """Ids differ, answers come 15 ms late, others write, and nothing is said to differ."""
    script = script_of(seed)

    found = list(both(script, other_coordinator(script, is_busy=is_busy)).differences())

    assert found == []


@pytest.mark.property
@given(SEEDS, st.data())
def test_any_wrong_error_is_noticed(seed: int, data: st.DataObject) -> None:
    """One answer with another error code is the one difference."""
    script = script_of(seed)
    played = other_coordinator(script)
    cut = both(script, played)
    compared_ids = {each.command.get("id") for each in cut.exchanges}
    coded = [
        call_id
        for call_id, each in played.heard.items()
        if call_id in compared_ids and each.data is not None and "errorCode" in each.data
    ]
    wrong = data.draw(st.sampled_from(coded))
    right = played.heard[wrong]
    assert right.data is not None
    body = {**right.data, "errorCode": right.data["errorCode"] + 100}
    played.heard[wrong] = Heard(right.command, right.at_ms, body)

    found = [difference for _, difference in both(script, played).differences()]

    assert [each.path.partition(".")[2] for each in found] == ["data.errorCode"]


def test_an_answer_that_never_comes_is_noticed() -> None:
    """And so is one that comes a second late."""
    script = script_of(3)
    played = other_coordinator(script)
    first, second = sorted(played.heard)[:2]
    del played.heard[first]
    late = played.heard[second]
    played.heard[second] = Heard(late.command, late.at_ms + 1_000, late.data)

    found = [difference for _, difference in both(script, played).differences()]

    assert (found[0].path, found[0].theirs) == ("replies[0].at", "(nothing)")
    assert (found[-1].path, found[-1].theirs) == ("replies[0].at", late.at_ms + 1_000)


def test_a_script_survives_its_lines() -> None:
    """Ids to draw stand before their JoinGroup, and are found there again."""
    script = script_of(4)
    named = live_comparison.TimedScript(
        script.commands,
        {
            command["id"]: str(uuid5(NAMESPACE_OID, str(command["id"])))
            for command in script.commands
            if command.get("api") == "JoinGroup"
        },
    )

    assert named.uuids
    assert live_comparison.TimedScript.of(named.lines()) == named


def test_shortened_programs_keep_their_pace() -> None:
    """After each request at least the pace passes, in one wait."""
    script = script_of(5)
    calls = [command for command in script.commands if command["op"] != "advance"]

    again = paced(calls, Clearance())

    pauses = [each["ms"] for each in again if each["op"] == "advance"]
    assert set(pauses) == {Clearance().pace_ms}
    assert len(pauses) == sum(each["op"] == "call" for each in calls)


def test_deviations_that_are_shipped_can_be_read() -> None:
    """Each has an id of its own, and an unknown name says what is known."""
    for path in DEVIATIONS.glob("*.toml"):
        ids = [each.explanation_id for each in all_explanations([path.stem])]
        assert len(ids) == len(set(ids)) > 0
    with pytest.raises(ConfigError, match="neither a file nor one of kfake, librdkafka-mock"):
        all_explanations(["redpanda"])
