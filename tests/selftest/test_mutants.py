"""Random one-line mutants of the group coordinator, and what notices them."""

import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.mutants.generation import (
    code_with,
    module_named,
    modules_of_core,
    mutants_of,
)
from coordinator_sim_conformance.mutants.hunt import Hunt, is_killed_by
from coordinator_sim_conformance.mutants.mutant import Mutant
from coordinator_sim_conformance.mutants.patching import LoadedFunctions
from coordinator_sim_conformance.mutants.plays import case_plays
from coordinator_sim_conformance.mutants.record import (
    all_mutants,
    reasons_of_survivors,
    recorded_run,
)

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = 30


@cache
def mutants_by_module() -> dict[str, list[Mutant]]:
    """The mutants of each module that has any."""
    found = {module: mutants_of(module) for module in modules_of_core()}
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
    loaded = LoadedFunctions(modules_of_core())
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
    assert code_with(mutant).co_filename.endswith(f"{module.rpartition('.')[2]}.py")


def test_unknown_module_is_one_line() -> None:
    """The message has the modules that there are."""
    assert module_named("join") == "coordinator_sim.coordinator.join"
    with pytest.raises(ConfigError, match=r"'joins': no module of .* there are commit_val"):
        module_named("joins")
