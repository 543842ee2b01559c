"""Options as both command lines read them: repeated, joined, refused, behind a command."""

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.errors import ConfigError
from tests.command_line import run_here

app = CommandLine()
inner = CommandLine()
app.add_typer(inner, name="inner")


@app.callback()
def place(
    context: typer.Context, url: Annotated[str, typer.Option(envvar="TEST_URL")] = "default"
) -> None:
    """Options of the whole group."""
    context.obj = url.rstrip("/")


@inner.command()
def verb(
    context: typer.Context,
    names: Annotated[str, typer.Option(metavar="NAME,...")] = "all",
    each: Annotated[list[str] | None, typer.Option()] = None,
    count: Annotated[int, typer.Option()] = 0,
    shrink: Annotated[bool, typer.Option("--shrink/--no-shrink")] = True,
    quiet: Annotated[bool, typer.Option("--quiet")] = False,
) -> None:
    """Print what was read."""
    typer.echo(f"{context.obj} {names} {each} {count} {shrink} {quiet}")


@inner.command()
def other() -> None:
    """Another command, so that the group has two."""


def read(*words: str) -> str:
    """What the command has read."""
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_lists_take_commas_and_the_option_again() -> None:
    """Every value arrives, in the order of the command line."""
    joined = read("inner", "verb", "--names", "a,b", "--names", "c")
    listed = read("inner", "verb", "--each", "a,b", "--each", "c")
    assert joined == "default a,b,c None 0 True False"
    assert listed == "default all ['a,b', 'c'] 0 True False"


@pytest.mark.parametrize("words", [("--count", "1", "--count", "1"), ("--shrink", "--no-shrink")])
def test_second_value_of_an_option_without_a_list_is_refused(words: tuple[str, ...]) -> None:
    """Neither of the two is taken; a switch without an opposite may be there twice."""
    with pytest.raises(ConfigError, match=f"{words[0]} is there 2 times: give it once"):
        read("inner", "verb", *words)
    assert read("inner", "verb", "--quiet", "--quiet").endswith("True")


@pytest.mark.parametrize(
    "words",
    [
        ("--url", "http://x/", "inner", "verb", "--count", "2"),
        ("inner", "--url", "http://x/", "verb", "--count", "2"),
        ("inner", "verb", "--url", "http://x/", "--count", "2"),
        ("inner", "verb", "--count", "2", "--url=http://x/"),
    ],
)
def test_option_of_a_group_is_read_before_and_after_the_command(words: tuple[str, ...]) -> None:
    """The group makes the same of it wherever it is."""
    assert read(*words) == "http://x all None 2 True False"


def test_option_of_a_group_overrides_its_variable_and_is_refused_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The word of the command line counts, and two of them contradict each other."""
    monkeypatch.setenv("TEST_URL", "http://variable")
    assert read("inner", "verb").startswith("http://variable ")
    assert read("inner", "verb", "--url", "http://word").startswith("http://word ")
    with pytest.raises(ConfigError, match="--url is there before and after the command"):
        read("--url", "http://a", "inner", "verb", "--url", "http://b")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("run", "member-crash", "--seed", "1", "--seed", "2"), "--seed is there 2 times"),
        (("run", "member-crash", "--set", "a=1", "--set", "a=2"), "--set: a is there twice"),
        (("serve", "--topics", "a:6", "--topics", "a:3"), "--topics has a twice"),
        (("serve", "--user", "a:1", "--user", "a:2"), "--user: a is there twice"),
        (("ctl", "fault", "add", "drop", "api=Fetch", "api=Fetch"), "api is there twice"),
        (("ctl", "trace", "mark", "x", "a=1", "a=2"), "a is there twice"),
        (
            ("replay", ".", "--partitions", "t=1", "--partitions", "t=2"),
            "--partitions t=2: t is there twice",
        ),
        (
            ("replay", ".", "--set", "session.timeout.ms=1", "--set", "session.timeout.ms=2"),
            "session.timeout.ms is there twice; separate its values by commas",
        ),
    ],
)
def test_two_values_for_one_name_are_one_line(
    words: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    """The name and the way out; nothing is run."""
    done = run_here(*words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
