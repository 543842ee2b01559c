"""What `conformance run` writes, and how its known gaps count, as its user sees it."""

import json
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner, Result

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.cli.main import app
from coordinator_sim_conformance.script.play import read_cases
from coordinator_sim_conformance.verdicts.results import read_result

TWO_GROUPS = (
    "HB-002 right\n  @ J must\n  @ Kafka.one\n  partition otherGroup 13\n"
    "HB-003 wrong\n  @ J must\n  @ Kafka.two\n  stable A\n  partition otherGroup 35\n"
    "HB-004 odd\n  @ J must quirk\n  partition otherGroup 36\n"
)


@pytest.fixture(autouse=True)
def _three_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that passes, one that fails, one that fails in a quirk."""
    cases = read_cases("HEARTBEAT", TWO_GROUPS)
    monkeypatch.setattr("coordinator_sim_conformance.cli.run.any_cases", lambda: cases)


def run(*arguments: str | Path, code: int = 0) -> Result:
    """Run the command `run` on its way to that exit code."""
    done = CliRunner().invoke(app, ["run", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def test_failure_can_be_understood_alone_and_repeated(tmp_path: Path) -> None:
    """Requirement, source, expectation, what came and a command that plays the case alone."""
    shown = run("--target", "serve", code=1).stdout
    assert "failed HB-003 as 4.4: wrong (must)" in shown
    for line in (
        "  stable A\n",
        "  expected: partition otherGroup 35\n",
        "  came:     13\n",
        "  source:   Kafka.two\n",
        "  again:    conformance run --target serve --profile 4.4 --case HB-003\n",
    ):
        assert line in shown

    run("--target", "serve", "--result", tmp_path / "all.json", code=1)
    again = read_result(tmp_path / "all.json").endings[1].again
    assert "0 passed, 1 failed" in run(*shlex.split(again)[2:], code=1).stdout


def test_case_is_chosen_by_its_whole_id() -> None:
    """`-k HB-00` would take all three."""
    assert "1 passed, 0 failed" in run("--case", "hb-002").stdout
    with pytest.raises(ConfigError, match="no case 'HB-00'"):
        run("--case", "HB-00")


def test_quirk_counts_only_in_a_strict_run() -> None:
    """Where Kafka is odd, doing better is told, and is no failure."""
    shown = run("--case", "HB-004").stdout
    assert "quirk HB-004 as 4.4: odd" in shown
    assert "0 passed, 0 failed, 0 skipped, 0 unknown, 1 quirk" in shown
    assert "0 passed, 1 failed" in run("--case", "HB-004", "--strict", code=1).stdout


def test_known_gap_is_no_failure_until_it_closes(tmp_path: Path) -> None:
    """A baseline written from a run makes the run green; a gap that is none is named."""
    gaps = tmp_path / "gaps.toml"
    run("--write-baseline", gaps, code=1)
    assert '"HB-003@4.4" = "partition otherGroup 35: came 13"' in gaps.read_text()

    shown = run("--baseline", gaps).stdout
    assert "known gap HB-003 as 4.4: wrong: partition otherGroup 35" in shown
    assert "1 passed, 0 failed, 0 skipped, 0 unknown, 2 known gap" in shown

    gaps.write_text('HB-002 = "once upon a time"\n')
    shown = run("--baseline", gaps, "--case", "HB-002", code=1).stdout
    assert f"gap closed HB-002 as 4.4: take 'HB-002' out of {gaps}" in shown


def test_every_form_tells_the_same(tmp_path: Path) -> None:
    """JSON, a result file, JUnit and TAP of one run."""
    files = {name: tmp_path / name for name in ("result", "junit", "tap")}
    named = ("--name", "their broker")
    run(*named, *(word for name, file in files.items() for word in (f"--{name}", file)), code=1)

    result = read_result(files["result"])
    assert [each.verdict.value for each in result.endings] == ["passed", "failed", "failed"]
    assert result.target.name == "their broker"
    assert ET.parse(files["junit"]).getroot().get("failures") == "1"  # noqa: S314 - our own
    assert "not ok 2 - HB-003 as 4.4: wrong\n" in files["tap"].read_text()

    printed = json.loads(run(*named, "--json", code=1).stdout)
    written = json.loads(files["result"].read_text())
    for each in (printed, written):
        each.pop("at")
        for ending in each["endings"]:
            ending.pop("elapsed_s")
    assert printed == written
    assert run("--tap", "-", code=1).stdout == files["tap"].read_text()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--json", "--tap", "-"), "--json and --tap - both want standard output"),
        (("--junit", "no/such/folder/j.xml"), "there is no folder no/such/folder"),
        (("--write-baseline", "no/such/folder/g.toml"), "there is no folder no/such/folder"),
    ],
)
def test_output_that_cannot_be_is_refused_before_the_run(
    options: tuple[str, ...], named: str
) -> None:
    """Nobody waits for a run whose result is then lost."""
    with pytest.raises(ConfigError, match=named):
        run(*options)
