"""The command `conformance` as its user sees it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app, main

COMMANDS = ("list", "coverage")


def output_of(*arguments: str | Path, code: int = 0) -> str:
    """What a command prints on its way to that exit code."""
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_has_an_example(command: str) -> None:
    """Whoever asks for help sees a line to copy."""
    assert "Example: conformance" in output_of(*command.split(), "--help")


def test_coverage_takes_a_list_or_a_mapping_and_prints_what_is_deferred(tmp_path: Path) -> None:
    """A deferred requirement is neither covered nor missing."""
    listed, mapped = tmp_path / "list.yaml", tmp_path / "mapping.yaml"
    listed.write_text("- id: COMMIT-037\n")
    mapped.write_text("cases:\n- id: COMMIT-037\n- id: NOBODY-001\n")

    assert "1 deferred, 0 missing" in output_of("coverage", listed)
    shown = output_of("coverage", listed, mapped, code=1)
    assert "missing  NOBODY-001" in shown
    assert "deferred COMMIT-037: wants" in shown
    assert json.loads(output_of("coverage", mapped, "--json", code=1))[0]["missing"] == [
        "NOBODY-001"
    ]


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
