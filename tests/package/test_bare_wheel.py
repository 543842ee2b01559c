"""The wheel in an empty environment, and with the packages of one extra at a time.

`--installed DIR` names the folder of the programs of an environment in which the wheel is installed
and no extra is; the session `package` makes it. An environment with an extra sees that one, and
has besides what the test types into it.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import metadata
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import typer

from coordinator_sim.cli.main import app as coordinator_sim
from coordinator_sim_conformance.cli.main import app as conformance

ROOT = Path(__file__).resolve().parents[2]
INSTALL_LINE = re.compile(r"^pip install ('?\.(?:\[[\w,]+\])?'?)(?:\s|$)", re.MULTILINE)
REMEDY = re.compile(r"pip install ((?:'[^']+'|[^\s,]+)(?: '[^']+')*)")
EXTRAS = metadata("coordinator-sim").get_all("Provides-Extra") or []
PROGRAMS = {"coordinator-sim": coordinator_sim, "conformance": conformance}
MODULES = {"coordinator-sim": "coordinator_sim", "conformance": "coordinator_sim_conformance"}

WORDS = {
    "conformance kafka-tests": "--list",
    "coordinator-sim ctl fault add": "drop",
    "conformance run": "-k JOIN-001",
    "conformance museum": "--exhibit KAFKA-12890",
    "conformance differ": "--reference localhost:9",
    "conformance mutants": "--sample 1 --tests .",
}
"""Words of commands that would be refused with `1` for each argument, or take long without."""

NEEDING = {
    "coordinator-sim rehearse": "pages",
    "coordinator-sim demo": "report",
    "coordinator-sim report . --master": "spark",
    "coordinator-sim report": "report",
    "coordinator-sim sweep": "spark",
    "coordinator-sim rollout": "spark",
    "coordinator-sim trogdor": "live",
    "coordinator-sim watch": "live",
    "coordinator-sim member --bootstrap localhost:9 --connect": "live",
    "coordinator-sim serve": "serve",
    "coordinator-sim ctl": "serve",
    "coordinator-sim shape --bootstrap localhost:9 --group g": "clients",
    "conformance coverage": "conformance",
    "conformance proxy": "conformance",
    "conformance settings": "conformance",
    "conformance differ --reference localhost:9": "conformance",
    "conformance mutants --sample 1 --tests .": "conformance",
    "conformance run --target serve": "conformance",
    "conformance run --bootstrap localhost:9": "conformance",
}
"""Beginnings of command lines that need an extra; all others need none."""

TRIED = {
    "pages": ("coordinator-sim rehearse 1",),
    "report": ("coordinator-sim report 1",),
    "spark": ("coordinator-sim rollout 1", "coordinator-sim report . --master local[1]"),
    "live": (
        "coordinator-sim trogdor run 1",
        "coordinator-sim trogdor client uptime --target localhost:9",
        "coordinator-sim trogdor agent --agent.config 1 --node-name 1",
        "coordinator-sim member --bootstrap localhost:9 --connect --config /dev/null",
        "coordinator-sim watch --bootstrap localhost:9",
    ),
    "serve": ("coordinator-sim ctl --url http://localhost:9 status",),
    "clients": ("coordinator-sim shape --bootstrap localhost:9 --group g",),
    "conformance": (
        "conformance coverage 1",
        "conformance settings",
        "conformance proxy --listen 1 --upstream 1",
        "conformance run --bootstrap localhost:9",
        "conformance run --target serve -k JOIN-001",
    ),
}
"""Command lines that end soon where an extra is installed, be it by another refusal."""


@pytest.fixture(scope="module")
def installed(pytestconfig: pytest.Config) -> Path:
    """Folder of the programs of the bare environment."""
    folder = pytestconfig.getoption("--installed")
    if folder is None:
        pytest.skip("needs --installed DIR, as the session `package` gives it")
    return Path(folder).absolute()


def commands_of(program: str) -> Iterator[tuple[str, bool, str]]:
    """Every command of a program: its name, whether it has commands, and words that it wants."""
    left = [(program, typer.main.get_command(PROGRAMS[program]))]
    while left:
        name, command = left.pop()
        below = getattr(command, "commands", {})
        left += [(f"{name} {each}", below[each]) for each in below]
        words = [
            "1" if each.param_type_name == "argument" else f"{each.opts[0]} 1"
            for each in command.params
            if each.required
        ]
        yield name, bool(below), WORDS.get(name) or " ".join(words)


COMMANDS = [each for program in PROGRAMS for each in commands_of(program)]


def typed(
    line: str, installed: Path, folder: Path, path: Path = Path("/usr/bin")
) -> "CompletedProcess[str]":
    """How a command line ends in an environment, with the system's programs of that path."""
    program, *words = shlex.split(line)
    command: list[str | Path] = [installed / program]
    if not command[0].exists():  # type: ignore[union-attr] # a path
        command = [installed / "python", "-m", MODULES[program]]
    return subprocess.run(
        [*command, *words],
        cwd=folder,
        env={"PATH": f"{installed}:{path}", "HOME": str(folder), "COLUMNS": "110"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def all_typed(
    lines: list[str], installed: Path, folder: Path
) -> "Iterator[tuple[str, CompletedProcess[str]]]":
    """How command lines end, a few at a time."""
    with ThreadPoolExecutor(3) as pool:
        yield from zip(
            lines, pool.map(lambda line: typed(line, installed, folder), lines), strict=True
        )


def extra_of(line: str) -> str | None:
    """The extra that a command line needs."""
    return next((extra for start, extra in NEEDING.items() if line.startswith(start)), None)


def remedy_in(line: str, done: "CompletedProcess[str]") -> str:
    """What follows `pip install` in the one line of a command whose extra is missing."""
    assert (done.returncode, done.stdout) == (2, ""), f"{line}: {done.stdout}{done.stderr}"
    assert done.stderr.count("\n") == 1, f"{line}: {done.stderr}"
    found = REMEDY.search(done.stderr)
    assert found, f"{line}: {done.stderr}"
    return found[1]


def check_not_missing(line: str, done: "CompletedProcess[str]") -> None:
    """Check that a command ran, or was refused in a line that is about something else."""
    assert done.returncode in {0, 1, 2}, f"{line}: {done.stderr}"
    assert "Traceback" not in done.stderr, f"{line}: {done.stderr}"
    assert "pip install" not in done.stderr + done.stdout, f"{line}: {done.stderr}"
    if done.returncode == 2:
        assert done.stderr.count("\n") == 1, f"{line}: {done.stderr}"


HELPS = """
import sys
from importlib import import_module
app = import_module(sys.argv[1]).app
for line in sys.argv[2:]:
    app([*line.split(), "--help"], standalone_mode=False)
"""
"""Prints the help of each command: a program imports the modules of all of them at once."""


def check_helps(program: str, programs: Path, folder: Path) -> None:
    """Check that a program says what each of its commands does."""
    assert typed(f"{program} --help", programs, folder).returncode == 0
    names = [name.removeprefix(program) for name, _, _ in COMMANDS if name.startswith(program)]
    done = subprocess.run(
        [programs / "python", "-c", HELPS, f"{MODULES[program]}.cli.main", *names],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.count("Usage: ") == len(names)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_help_is_printed_without_extras(
    program: str, installed: Path, tmp_path: Path
) -> None:
    """No command needs an extra to say what it does."""
    check_helps(program, installed, tmp_path)


def test_command_without_its_extra_is_one_line_with_the_remedy(
    installed: Path, tmp_path: Path
) -> None:
    """Whatever an extra is missing for ends with exit code 2; whatever needs none runs."""
    commands = [f"{name} {words}".strip() for name, is_group, words in COMMANDS if not is_group]
    lines = list(dict.fromkeys([*commands, *(each for lines in TRIED.values() for each in lines)]))
    remedies: dict[str, set[str]] = {}
    for line, done in all_typed(lines, installed, tmp_path):
        extra = extra_of(line)
        if extra is None:
            check_not_missing(line, done)
        else:
            remedies.setdefault(extra, set()).add(remedy_in(line, done))
    assert {extra: len(found) for extra, found in remedies.items()} == dict.fromkeys(remedies, 1)
    assert set(remedies) == set(TRIED)


@pytest.fixture(scope="module")
def with_extra(
    installed: Path, tmp_path_factory: pytest.TempPathFactory
) -> "Callable[[str], Path]":
    """Gives the folder of the programs of the environment of an extra; nothing is in it at first.

    It sees the packages of the bare environment.
    """
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"

    def packages_of(programs: Path) -> str:
        command = [programs / "python", "-c", where]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    @cache
    def made(extra: str) -> Path:
        folder = tmp_path_factory.mktemp(extra)
        subprocess.run([installed / "python", "-m", "venv", "--without-pip", folder], check=True)
        seen = Path(packages_of(folder / "bin"), "bare.pth")
        seen.write_text(packages_of(installed), encoding="utf-8")
        return folder / "bin"

    return made


def install(words: str, installed: Path) -> str:
    """Type `pip install` in the source folder; return the last line that it prints."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    command = [*pip, "--python", installed / "python", "install", *shlex.split(words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("extra", EXTRAS)
def test_remedy_installs_what_the_extra_does(
    extra: str, installed: Path, with_extra: "Callable[[str], Path]", tmp_path: Path
) -> None:
    """After the remedy the commands go on; the extra itself then brings the project alone."""
    programs = with_extra(extra)
    lines = list(TRIED.get(extra, ()))
    if lines:
        install(remedy_in(lines[0], typed(lines[0], installed, tmp_path)), programs)
    for line, done in all_typed(lines, programs, tmp_path):
        check_not_missing(line, done)
    brought = install(f"'.[{extra}]'", programs).split()[2:]
    assert len(brought) == 1 or not lines, brought
    for program in PROGRAMS:
        check_helps(program, programs, tmp_path)


def test_report_without_java_names_the_package_that_has_one(
    with_extra: "Callable[[str], Path]", tmp_path: Path
) -> None:
    """Where there is no Java, the remedy brings one that a report is made with."""
    programs = with_extra("spark")
    install("'.[spark]'", programs)
    path = tmp_path / "path"
    path.mkdir()
    for program in Path("/usr/bin").iterdir():
        if not program.name.startswith("java"):
            (path / program.name).symlink_to(program)
    assert typed("coordinator-sim run member-crash --out t", programs, tmp_path).returncode == 0
    report = "coordinator-sim report t --out r --master local[1]"
    install(remedy_in(report, typed(report, programs, tmp_path, path)), programs)
    done = typed(report, programs, tmp_path, path)
    assert done.returncode == 0, done.stderr


def test_readme_names_extras_that_are_typed_here(with_extra: "Callable[[str], Path]") -> None:
    """Install lines of the README name extras that are typed above; the line without is here."""
    lines = INSTALL_LINE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    named = {extra for line in lines for extra in re.findall(r"\w+", line)}
    assert "." in lines
    assert install(".", with_extra("none")).startswith("Successfully installed coordinator-sim")
    assert named
    assert named <= set(EXTRAS)
