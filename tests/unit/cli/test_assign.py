"""`assign`: cases in, assignments or differences out."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_sim.cli.main import app
from coordinator_sim.harness.assignor_cases import CaseFormError

GOLDEN = Path(__file__).resolve().parents[1] / "assignors" / "golden"
RANGE = {
    "assignor": "range",
    "label": "two of one",
    "topics": {"t": [[], []]},
    "members": [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}],
    "expected": {"a": [["t", 0]], "b": [["t", 1]]},
}


def case_file(tmp_path: Path, *cases: object) -> Path:
    """A file with one case a line, and a blank line in between."""
    path = tmp_path / "cases.jsonl"
    path.write_text("\n\n".join(json.dumps(case) for case in cases))
    return path


def test_assignments_are_printed_member_by_member(tmp_path: Path) -> None:
    """Without --check the expected results are not looked at."""
    wrong = {**RANGE, "expected": {}}
    done = CliRunner().invoke(app, ["assign", str(case_file(tmp_path, wrong))])

    assert done.exit_code == 0
    assert done.stdout.splitlines() == ["two of one (range)", "  a: p:t-0", "  b: p:t-1"]


def test_connect_steps_are_printed_with_their_delay() -> None:
    """Each step of a Connect case has a line of its own, its workers below."""
    done = CliRunner().invoke(app, ["assign", str(GOLDEN / "connect-incremental.jsonl")])

    lines = done.stdout.splitlines()
    assert lines[0] == "worker joins (connect-incremental)"
    assert lines[1] == "  1 worker: delay 0 ms"
    assert any("; revoked " in line for line in lines)


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_json_is_one_object_a_line(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Outcomes, or differences: a machine reads them line by line."""
    wrong = {**RANGE, "expected": {"a": [["t", 1]], "b": [["t", 0]]}}
    done = CliRunner().invoke(app, ["assign", str(case_file(tmp_path, wrong)), "--json", *options])

    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(objects) == 1
    assert done.exit_code == (1 if options else 0)


def test_check_counts_cases_and_names_the_first_difference(tmp_path: Path) -> None:
    """Exit code 1, and the place in the file."""
    wrong = {**RANGE, "label": "wrong", "expected": {"a": [["t", 1]], "b": [["t", 0]]}}
    done = CliRunner().invoke(app, ["assign", str(case_file(tmp_path, RANGE, wrong)), "--check"])

    assert done.exit_code == 1
    assert "line 3: wrong" in done.stdout
    assert done.stdout.endswith("2 cases, 1 differ\n")


@pytest.mark.parametrize(
    ("text", "words"), [("", "holds no cases"), ("{", "line 1"), ('{"assignor": "luck"}', "line 1")]
)
def test_line_that_is_no_case_is_named(tmp_path: Path, text: str, words: str) -> None:
    """File, line, and what is wrong with it."""
    path = tmp_path / "cases.jsonl"
    path.write_text(text)
    done = CliRunner().invoke(app, ["assign", str(path)])

    assert isinstance(done.exception, CaseFormError)
    assert str(path) in str(done.exception)
    assert words in str(done.exception)


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A directory is no file of cases."""
    done = CliRunner().invoke(app, ["assign", str(tmp_path)])

    assert isinstance(done.exception, CaseFormError)
    assert "cannot be read" in str(done.exception)
