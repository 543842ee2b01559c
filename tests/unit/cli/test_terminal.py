"""Commands that draw something, on a terminal: bars and colours are escapes, none spelled out."""

from pathlib import Path

import pytest

from tests.command_line import run_here
from tests.terminal import ESCAPE, assert_drawn, run_on_terminal

LOG = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"
BARS = {
    "run": (("run", "member-crash", "--metrics"), "simulating"),
    "ingest": (("ingest", LOG), "reading"),
}
SPARK = {
    "demo": ("demo", "--seeds", "1"),
    "report": ("report", "trace"),
    "rollout": ("rollout", "member-crash", "--batch", "1", "--pause", "10s", "--seeds", "1"),
    "sweep": ("sweep", "consumer-rolling-deploy", "--assignors", "range", "--seeds", "1"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace."""
    path = tmp_path_factory.mktemp("terminal")
    assert run_here("run", "member-crash", "--out", path / "trace").returncode == 0
    return path


@pytest.mark.parametrize("is_piped", [False, True])
@pytest.mark.parametrize("command", BARS)
def test_bar_is_drawn_with_escapes_and_pipes_have_none(
    command: str, is_piped: bool, folder: Path
) -> None:
    """The bar is seen on the terminal, be stdout that terminal or a pipe."""
    words, label = BARS[command]
    code, terminal, piped = run_on_terminal(
        "coordinator-sim", *words, folder=folder, is_piped=is_piped
    )
    assert code == 0, terminal
    assert label in terminal
    assert_drawn(terminal, piped)


@pytest.mark.parametrize("command", BARS)
def test_without_a_terminal_nothing_is_drawn(command: str, folder: Path) -> None:
    """Pipes for both streams hold no escape, raw or spelled out."""
    done = run_here(*BARS[command][0], folder=folder)
    assert done.returncode == 0, done.stderr
    assert ESCAPE not in done.stdout + done.stderr
    assert "\\u001b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "demo",
        "report",
        *(
            pytest.param(each, marks=[pytest.mark.nightly, pytest.mark.spark])
            for each in ("rollout", "sweep")
        ),
    ],
)
def test_spinner_of_a_job_is_drawn_until_ctrl_c(command: str, folder: Path) -> None:
    """The spinner turns before and between steps; Ctrl-C leaves one line and a visible cursor."""
    step = "computed " if command in {"demo", "report"} else "starting Spark"
    code, terminal, piped = run_on_terminal(
        "coordinator-sim", *SPARK[command], folder=folder, is_piped=True, until=step
    )
    assert code == 130, terminal
    assert_drawn(terminal, piped)
    assert "\x1b[?25h" in terminal
    assert "error: interrupted" in terminal


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("command", SPARK)
def test_spark_on_a_terminal_ends_with_its_tables(command: str, folder: Path) -> None:
    """Each step is told on the terminal, and so are the tables."""
    code, terminal, _ = run_on_terminal("coordinator-sim", *SPARK[command], folder=folder)
    assert code == 0, terminal
    assert "computed " in terminal
    assert_drawn(terminal, "")
