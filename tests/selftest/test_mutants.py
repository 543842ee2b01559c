"""Random one-line mutants of the group coordinator, and what notices them."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim_conformance.museum.patching import LoadedFunctions
from coordinator_sim_conformance.mutants import generation
from coordinator_sim_conformance.mutants.hunt import Hunt, case_plays, is_killed_by
from coordinator_sim_conformance.mutants.mutant import Mutant
from coordinator_sim_conformance.mutants.record import (
    Record,
    all_mutants,
    drawn,
    named,
    played_again,
    read_record,
    reasons_of_survivors,
    record_of,
    recorded_run,
    write_record,
)

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = 30


@cache
def mutants_by_module() -> dict[str, list[Mutant]]:
    """The mutants of each module that has any."""
    found = {module: generation.mutants_of(module) for module in generation.modules_of_core()}
    return {module: mutants for module, mutants in found.items() if mutants}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants are played in forks")
def test_recorded_killers_kill_again() -> None:
    """Thirty mutants of the recorded run, each played by the case that noticed it then."""
    plays = case_plays()
    known = {mutant.mutant_id: mutant for mutant in all_mutants()}
    chosen = [
        (known[mutant_id], plays[killer])
        for mutant_id, killer in recorded_run().killers.items()
        if mutant_id in known and killer in plays
    ][:SAMPLE]
    assert len(chosen) == SAMPLE
    for passes in {id(passes): passes for _, passes in chosen}.values():
        assert passes()
    loaded = LoadedFunctions(generation.modules_of_core())
    assert [m.mutant_id for m, passes in chosen if not is_killed_by(loaded, m, passes)] == []
    assert all(passes() for _, passes in chosen), "the core of this process is whole"


def test_explained_survivors_are_mutants() -> None:
    """A reason whose line was rewritten is out of date; a mutant that is noticed needs none."""
    known = {mutant.mutant_id for mutant in all_mutants()}
    assert reasons_of_survivors().keys() <= known
    killed = {mutant_id for mutant_id, killer in recorded_run().killers.items() if killer}
    assert not killed & reasons_of_survivors().keys()


@pytest.mark.nightly
def test_recorded_run_has_no_new_survivor() -> None:
    """What was noticed when the run was recorded is noticed still."""
    record = recorded_run()
    chosen = [each for each in all_mutants() if record.killers.get(each.mutant_id)]
    trials = Hunt([ROOT / "tests" / "unit" / "coordinator"]).trials(chosen, reasons_of_survivors())
    assert [each.mutant.mutant_id for each in trials if not each.killed_by] == []


@pytest.mark.property
@given(st.data())
def test_every_mutant_has_an_id_of_its_own_and_compiles(data: st.DataObject) -> None:
    """The changed code is Python's, and is not the code that was there."""
    module = data.draw(st.sampled_from(sorted(mutants_by_module())))
    mutants = mutants_by_module()[module]
    assert len({mutant.mutant_id for mutant in mutants}) == len(mutants)
    mutant = data.draw(st.sampled_from(mutants))
    assert mutant.before != mutant.after or mutant.operator.startswith("always-")
    assert generation.code_with(mutant).co_filename.endswith(f"{module.rpartition('.')[2]}.py")


def test_unknown_module_is_one_line() -> None:
    """The message has the modules that there are."""
    assert generation.module_named("join") == "coordinator_sim.coordinator.classic.join"
    with pytest.raises(
        ConfigError, match=r"'joins': no module of .* there are classic\.group, classic\.join"
    ):
        generation.module_named("joins")


@pytest.mark.property
@given(st.data())
def test_a_mutant_that_goes_takes_no_other_out_of_the_draw(data: st.DataObject) -> None:
    """Each has its own lot; those named are drawn before it is asked."""
    every = mutants_by_module()["coordinator_sim.coordinator.classic.join"]
    sample = data.draw(st.integers(min_value=0, max_value=len(every)))
    seed = data.draw(st.integers(min_value=0))
    gone = data.draw(st.sampled_from(every))
    before = drawn(every, sample, seed)
    after = drawn([each for each in every if each is not gone], sample, seed)
    assert {each.mutant_id for each in before} - {gone.mutant_id} <= {
        each.mutant_id for each in after
    }
    wanted = data.draw(st.sets(st.sampled_from(every).map(lambda each: each.mutant_id)))
    kept = {each.mutant_id for each in drawn(every, sample, seed, wanted)}
    assert kept <= wanted or wanted <= kept


def test_a_recorded_run_is_played_again() -> None:
    """What went meanwhile is passed over; a larger sample draws more."""
    every = mutants_by_module()["coordinator_sim.coordinator.classic.join"]
    wanted = [every[7].mutant_id, every[3].mutant_id]
    killers = dict.fromkeys([*wanted, "coordinator.classic.join:gone:compare:1"], "")
    record = Record(version="0", of=9, sample=3, seed=0, killers=killers)
    ids = [each.mutant_id for each in played_again(every, record, None, 0)]
    assert sorted(ids) == sorted(wanted)
    more = [each.mutant_id for each in played_again(every, record, 5, 0)]
    assert (more[:2], len(set(more))) == (ids, 5)


def test_a_run_is_read_back_and_anything_else_is_one_line(tmp_path: Path) -> None:
    """What `--again` takes is what `--record` wrote."""
    path = tmp_path / "run.json"
    write_record(record_of([], of=7, seed=3), path)
    assert (read_record(path).of, read_record(path).seed) == (7, 3)
    path.write_text("{}")
    with pytest.raises(DataError, match=r"run\.json: no run of `mutants --record`"):
        read_record(path)
    with pytest.raises(DataError, match=r"none\.json: no run of `mutants --record`"):
        read_record(tmp_path / "none.json")


@pytest.mark.nightly
def test_the_command_plays_one_mutant_with_tests() -> None:
    """As a user types it, in a process of its own."""
    options = [
        "--only",
        "coordinator.classic.join:_rejoin:compare:5",
        "--tests",
        "tests/unit/coordinator",
    ]
    program = [sys.executable, "-m", "coordinator_sim_conformance", "mutants", *options]
    done = subprocess.run(program, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 mutants noticed" in done.stdout


def test_a_mutant_is_named_by_its_id() -> None:
    """Given twice it is played once; one that there is not is one line."""
    first, second, *_ = every = mutants_by_module()["coordinator_sim.coordinator.classic.join"]
    ids = [second.mutant_id, first.mutant_id, second.mutant_id]
    assert named(every, ids) == [second, first]
    with pytest.raises(ConfigError, match=r"--only 'join:no:no:1': no such mutant; give an id"):
        named(every, ["join:no:no:1"])
