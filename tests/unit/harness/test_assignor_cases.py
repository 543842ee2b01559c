"""Case files: what is a case, what differs, and what the command says of both."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator_sim.cli.assign import assign
from coordinator_sim.harness.assignor_cases import CaseFormError, first_difference, parse_case

GOLDEN = Path(__file__).parents[1] / "assignors" / "golden"
CONSUMER: dict[str, Any] = {
    "label": "one",
    "assignor": "range",
    "topics": {"t": [[], []]},
    "members": [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}],
    "expected": {"a": [["t", 0]], "b": [["t", 1]]},
}
STEP: dict[str, Any] = {
    "step": "start",
    "now": 0,
    "generation": 1,
    "last_completed": -1,
    "config": {"c": 1},
    "members": [{"id": "w"}],
    "delay": 0,
    "assigned": {"w": {"connectors": ["c"], "tasks": [["c", 0]]}},
    "revoked": {},
}
CONNECT: dict[str, Any] = {
    "label": "two",
    "assignor": "connect-incremental",
    "max_delay": 0,
    "steps": [STEP],
}
TWO = "two (connect-incremental), step 'start'"
NO_MORE = "Java: IllegalStateException, no more unfilled consumers"


def line(case: dict[str, Any], **changes: object) -> bytes:
    """The case as a line, with some fields replaced."""
    return json.dumps(case | changes).encode()


def test_cases_that_agree_have_no_difference() -> None:
    """The base cases of this module are right."""
    assert first_difference(parse_case(line(CONSUMER))) is None
    assert first_difference(parse_case(line(CONNECT))) is None


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            line(CONSUMER, expected={"a": [["t", 1]], "b": [["t", 1]]}),
            "one (range), member 'a': assigned p:t-0, expected p:t-1",
        ),
        (
            line(CONSUMER, expected={"a": [["t", 0]]}),
            "one (range), member 'b': assigned p:t-1, expected not mentioned",
        ),
        (line(CONNECT, steps=[STEP | {"delay": 5}]), f"{TWO}: delay is 0 ms, expected 5"),
        (
            line(CONNECT, steps=[STEP | {"revoked": {"w": {"connectors": [], "tasks": []}}}]),
            f"{TWO}, member 'w': revoked not mentioned, expected nothing",
        ),
        (
            line(
                CONSUMER,
                assignor="sticky",
                topics={"t": [[]]},
                members=[{"id": "a", "topics": ["t"], "owned": [["t", 7]], "generation": 1}],
                expected={"a": [["t", 0]]},
            ),
            f"one (sticky): no assignment: no member may take p:t-0 ({NO_MORE})",
        ),
    ],
)
def test_the_first_difference_is_named(case: bytes, message: str) -> None:
    """Label, step and member say where, the rest says what."""
    assert str(first_difference(parse_case(case))) == message


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (b"nonsense", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `assignor`"),
        (line(CONSUMER, assignor="best"), "unknown assignor 'best'; known are range"),
        (line({"assignor": "range"}), "missing required field `topics`"),
        (line(CONSUMER, members=[]), "`members` is empty"),
        (line(CONSUMER, members=CONSUMER["members"][:1] * 2), "two members have the same id"),
        (line(CONNECT, steps=[STEP | {"now": "x"}]), r"\$.steps\[0\].now"),
        (line(CONNECT, max_delay=-1), "max_delay"),
    ],
)
def test_a_line_of_another_form_is_refused(case: bytes, message: str) -> None:
    """The message names the field."""
    with pytest.raises(CaseFormError, match=message):
        parse_case(case)


def test_a_check_needs_expectations() -> None:
    """Cases to be run alone may do without."""
    case = {key: value for key, value in CONSUMER.items() if key != "expected"}
    with pytest.raises(CaseFormError, match="`expected`, which a check needs"):
        first_difference(parse_case(line(case)))
    step = {key: value for key, value in STEP.items() if key != "delay"}
    with pytest.raises(CaseFormError, match=r"\$.steps\[0\]"):
        first_difference(parse_case(line(CONNECT, steps=[step])))


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of the command; a user's error is raised."""
    result = CliRunner().invoke(assign, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_check_of_the_golden_files_finds_nothing() -> None:
    """All files in one run."""
    files = sorted(str(path) for path in GOLDEN.glob("*.jsonl"))
    assert run("--check", *files) == (0, "1026 cases, 0 differ\n")


def test_check_prints_differences_and_exits_1(tmp_path: Path) -> None:
    """One line a case that differs, with file and line number."""
    file = tmp_path / "cases.jsonl"
    wrong = line(CONSUMER, expected={"a": [], "b": []})
    file.write_bytes(b"\n".join([line(CONSUMER), b"", wrong]))
    message = "assigned p:t-0, expected nothing"
    code, output = run("--check", str(file))
    assert code == 1
    assert output.splitlines() == [
        f"{file}, line 3: one (range), member 'a': {message}",
        "2 cases, 1 differ",
    ]
    code, output = run("--check", "--json", str(file))
    assert (code, json.loads(output)) == (
        1,
        {
            "file": str(file),
            "line": 3,
            "label": "one",
            "assignor": "range",
            "step": "",
            "member": "a",
            "message": message,
        },
    )


def test_without_check_assignments_are_printed(tmp_path: Path) -> None:
    """Assignments are printed as text, or as one JSON object each."""
    file = tmp_path / "cases.jsonl"
    revoking = STEP | {"step": "stop", "generation": 2, "last_completed": 1, "config": {}}
    revoking["members"] = [{"id": "w", "connectors": ["c"], "tasks": [["c", 0]]}]
    file.write_bytes(line(CONSUMER) + b"\n" + line(CONNECT, steps=[STEP, revoking]))
    code, output = run(str(file))
    assert code == 0
    assert output.splitlines() == [
        "one (range)",
        "  a: p:t-0",
        "  b: p:t-1",
        "two (connect-incremental)",
        "  start: delay 0 ms",
        "    w: c:c t:c-0",
        "  stop: delay 0 ms",
        "    w: nothing; revoked c:c t:c-0",
    ]
    code, output = run("--json", str(file))
    rows = [json.loads(row) for row in output.splitlines()]
    assert [row["assigned"] for row in rows] == [
        {"a": ["p:t-0"], "b": ["p:t-1"]},
        {"w": ["c:c", "t:c-0"]},
        {"w": []},
    ]
    assert [row["revoked"] for row in rows] == [{}, {}, {"w": ["c:c", "t:c-0"]}]


def test_files_that_are_no_cases_are_refused(tmp_path: Path) -> None:
    """The error names the file, and the line where there is one."""
    file = tmp_path / "cases.jsonl"
    with pytest.raises(CaseFormError, match=f"{file} cannot be read: No such file"):
        run(str(file))
    file.write_text("\n\n")
    with pytest.raises(CaseFormError, match=f"{file} holds no cases"):
        run(str(file))
    file.write_bytes(line(CONSUMER) + b"\n{}")
    with pytest.raises(CaseFormError, match=f"{file}, line 2: .*`assignor`"):
        run(str(file))
