"""`--bug` of `run` and `serve`: a process that is broken on purpose, and says so."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.events import Event
from coordinator_sim_conformance.museum.breaking import broken_sources, source_of
from coordinator_sim_conformance.museum.bugs import Place, bugs_in_force, bugs_named, bugs_of
from tests.command_line import run_here

COMMAND = (sys.executable, "-m", "coordinator_sim")
OF_CLIENTS = ("coordinator_sim.clients.", "coordinator_sim.connect.", "coordinator_sim.assignors.")


def run_process(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    """A command to its end, in a process that has imported nothing yet."""
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)


def test_a_run_has_its_bug_and_its_trace_says_so(tmp_path: Path) -> None:
    """Generations stand still in the run, and nobody takes its trace for one of Kafka."""
    words = ("run", "rolling-bounce", "--bug", "generation-stands-still", "--format", "jsonl")
    done = run_process(*words, "--out", tmp_path / "run")

    assert done.returncode == 1, done.stderr
    assert "options: bug=generation-stands-still\n" in done.stdout
    assert "broken on purpose, no evidence of how Kafka behaves: generation-stands" in done.stdout
    recorded = read_run(tmp_path / "run")
    assert recorded.info.options["bug"] == "generation-stands-still"
    completed = [each for each in recorded.events() if each.event is Event.JOIN_COMPLETE]
    assert {each.generation for each in completed} == {0}


def test_bugs_of_two_modules_are_both_put_in(tmp_path: Path) -> None:
    """The option may be given again, in either form; the summary for machines names both."""
    words = ("--bug", "KAFKA-4925", "--bug=KAFKA-14382", "--json", "--out", str(tmp_path / "run"))
    done = run_process("run", "rolling-bounce", *words)
    assert json.loads(done.stdout)["options"]["bug"] == "KAFKA-4925,KAFKA-14382"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "rolling-bounce", "--bug", "KAFKA-0"), "no bug 'KAFKA-0' of a simulated run; "),
        (("serve", "--bug", "KAFKA-8463"), "no bug 'KAFKA-8463' of a served coordinator; there "),
        (
            ("run", "x", "--bug", "KAFKA-13419", "--bug", "KAFKA-14639"),
            "KAFKA-13419, KAFKA-14639 change the same line: choose one of them",
        ),
        (("run", "rolling-bounce", "--bug", "KAFKA-12890"), "break it in a fresh process"),
    ],
)
def test_a_bug_that_cannot_be_put_in_is_one_line(words: tuple[str, ...], told: str) -> None:
    """Unknown, of another side, two in one line, and too late: this process has the code."""
    done = run_here(*words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("command", "place"), [("serve", Place.SERVER), ("run", Place.RUN)])
def test_the_ids_that_fit_are_listed(command: str, place: Place) -> None:
    """Without a scenario, on one line."""
    done = run_here(command, "--bug", "list")
    assert (done.returncode, done.stdout) == (0, ", ".join(bugs_of(place)) + "\n")


def test_a_server_has_only_the_coordinators_bugs() -> None:
    """A run has all of them, a server none of clients, Connect or assignors."""
    assert set(bugs_of(Place.SERVER)) < set(bugs_of(Place.RUN))
    assert not [
        each for each in bugs_of(Place.SERVER).values() if each.module.startswith(OF_CLIENTS)
    ]
    assert bugs_in_force((), Place.SERVER) == ()


@pytest.mark.property
@given(st.lists(st.sampled_from(sorted(bugs_of(Place.RUN))), max_size=6))
def test_several_bugs_change_every_line_they_quote_or_are_refused(ids: list[str]) -> None:
    """What is accepted compiles, and each of its modules differs from the whole one."""
    try:
        chosen = bugs_named(ids, Place.RUN)
    except ConfigError as error:
        assert "change the same line" in str(error)  # noqa: PT017 - or it is accepted
        return
    sources = broken_sources(chosen)
    assert set(sources) == {each.module for each in chosen}
    for module, source in sources.items():
        compile(source, module, "exec")
        assert source != source_of(module)
        for each in chosen:
            if each.module == module and each.after:
                assert each.after in source
