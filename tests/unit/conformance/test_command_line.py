"""The command `conformance` as its user sees it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_sim.kafka.releases import RELEASES
from coordinator_sim_conformance.cli import registry
from coordinator_sim_conformance.cli.main import app, main
from coordinator_sim_conformance.script.play import read_cases

COMMANDS = ("list", "run", "matrix", "coverage", "differ", "museum", "mutants")


def output_of(*arguments: str | Path, code: int = 0) -> str:
    """What a command prints on its way to that exit code."""
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_has_an_example(command: str) -> None:
    """Whoever asks for help sees a line to copy."""
    assert "Example: conformance" in output_of(*command.split(), "--help")


def test_nothing_is_left_in_the_folder_of_the_user(tmp_path: Path) -> None:
    """Libraries that keep tables of their own find another place for them."""
    command = [sys.executable, "-m", "coordinator_sim_conformance", "list", "--area", "JOIN"]
    home = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    home.pop("HYPOTHESIS_STORAGE_DIRECTORY", None)
    (tmp_path / "here").mkdir()
    subprocess.run(command, cwd=tmp_path / "here", env=home, stdout=subprocess.DEVNULL, check=True)
    assert list((tmp_path / "here").iterdir()) == []


def test_coverage_takes_a_list_or_a_mapping_and_prints_what_is_deferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deferred requirement is neither covered nor missing."""
    deferred = {"LATER-001": "wants what nobody has"}
    monkeypatch.setattr(registry, "read_deferred", lambda: deferred)
    listed, mapped = tmp_path / "list.yaml", tmp_path / "mapping.yaml"
    listed.write_text("- id: LATER-001\n")
    mapped.write_text("cases:\n- id: LATER-001\n- id: NOBODY-001\n")

    assert "1 deferred, 0 missing" in output_of("coverage", listed)
    shown = output_of("coverage", listed, mapped, code=1)
    assert "missing  NOBODY-001" in shown
    assert "deferred LATER-001: wants" in shown
    assert json.loads(output_of("coverage", mapped, "--json", code=1))[0]["missing"] == [
        "NOBODY-001"
    ]


def test_run_counts_by_area_and_exits_1_when_a_case_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes is counted; what fails shows its transcript."""
    shown = output_of("run", "--profile", "4.4", "--profile", "3.9", "--area", "partition")
    assert "simulator as 3.9: 2 passed, 0 failed" in shown

    wrong = read_cases("PARTITION", "PART-999 wrong\n  @ J model\n  partition otherGroup 35\n")
    monkeypatch.setattr("coordinator_sim_conformance.cli.run.any_cases", lambda: wrong)
    shown = output_of("run", code=1)
    assert f"failed PART-999 as {RELEASES[-1]}" in shown
    assert "partition otherGroup" in shown
    failed = output_of("run", "--json", code=1)
    assert [each["verdict"] for each in json.loads(failed)["endings"]] == ["failed"]


def test_run_plays_the_cases_of_clients_once_and_only_on_the_simulator() -> None:
    """Cases of clients are about our own ports: neither profiles nor other targets matter."""
    shown = output_of("run", "--profile", "4.4", "--profile", "3.9", "-k", "DISC-01")
    assert "ports of the clients: 1 passed, 0 failed" in shown
    assert "simulator as" not in shown
    assert "C-DISC-01" in output_of("list", "--area", "c-disc")


def test_run_plays_the_cases_of_trogdor_once_and_only_on_the_simulator() -> None:
    """Cases of Trogdor play in virtual time; no other target has one."""
    shown = output_of("run", "--profile", "4.4", "--profile", "3.9", "-k", "TROGDOR-C08")
    assert "Trogdor in virtual time: 2 passed, 0 failed" in shown
    assert "simulator as" not in shown
    listed = output_of("list", "--area", "trogdor-stopping")
    assert "TROGDOR-C08" in listed
    assert "trogdor" in listed


def test_catalogue_of_trogdor_is_read_by_the_numbers_of_its_ids(tmp_path: Path) -> None:
    """What stands behind the number of an id is for readers."""
    catalogue = tmp_path / "mine.yaml"
    catalogue.write_text("cases: [{id: A01-create-pending}, {id: E04-expiry}, {id: A99-new}]\n")
    shown = output_of("coverage", str(catalogue), code=1)
    assert "3 cases, 2 covered, 0 deferred, 1 missing" in shown
    assert "missing  TROGDOR-A99" in shown


def test_list_shows_the_requirements_of_a_profile() -> None:
    """A requirement is listed with the profiles that must meet it."""
    rows = json.loads(output_of("list", "--area", "JOIN", "--profile", "legacy-0.10.2", "--json"))
    assert "JOIN-002" in [row["requirement_id"] for row in rows]
    assert "JOIN-001" not in [row["requirement_id"] for row in rows]
    assert "PART-001" in output_of("list", "--area", "partition")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--target", "kafka"),
        ("run", "--target", "oracle:kafka-1.0.0"),
        ("run", "--profile", "9.9"),
        ("run", "-k", "no-such-case"),
        ("list", "--area", "nowhere"),
    ],
)
def test_a_name_of_nothing_is_misuse(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error lists what there is."""
    monkeypatch.setattr("sys.argv", ["conformance", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (None, "No such file"),
        ("cases: [", "not a YAML catalogue"),
        ("just text", "wants a list of cases"),
        ("- title: nameless\n", "case 1 has no id"),
    ],
)
def test_unreadable_catalogue_is_misuse(
    text: str | None,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A file that says nothing about requirements is one error line and exit 2."""
    file = tmp_path / "catalogue.yaml"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr("sys.argv", ["conformance", "coverage", str(file)])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert named in error
    assert error.count("\n") == 1
