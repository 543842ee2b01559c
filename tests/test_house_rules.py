"""The house rules that no linter knows: sizes, determinism, comment tags, generated pages."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.commit_message import faults
from tools.house_ceilings import PLACES, complaints, counts, read_ceilings
from tools.house_facts import facts_of, runs_data, sources, text_of
from tools.prose import PACKAGES, ROOT

MODULE_LINES = 800
SUBJECTS = 20
"""Newest commits whose subjects are checked: a bad one that was merged is not red for ever."""
SUBJECTS_SINCE = "2026-11-29T00:00:00Z"
"""Subjects of earlier commits are not checked."""
TAGS = ("QUIRK", "DEVIATION", "UNSPECIFIED", "INVARIANT")
BANNED_MODULE_NAMES = {"utils", "common", "helpers", "misc", "manager"}
REVIEWED_CALLS = {
    "coordinator_sim/messages/codec/source.py": "compiles the codecs that are made of our schemas",
    "coordinator_sim/messages/codec/write_source.py": "constants of that source",
}
"""Modules with such calls, and why they run nothing from a file or a socket."""


def test_no_function_is_longer_than_a_screen() -> None:
    """Functions stay within 70 lines."""
    everywhere = sources(*PACKAGES, "tools", "benchmarks", "tests")
    assert [place for path in everywhere for place in facts_of(path).long] == []


def test_blocks_do_not_nest_deeply() -> None:
    """No function nests its blocks more than four deep."""
    assert [place for path in sources(*PACKAGES) for place in facts_of(path).nested] == []


def test_every_package_of_the_wheel_says_that_it_is_typed() -> None:
    """A type checker reads a package only where `py.typed` lies in it."""
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert [name for name in packages if not (ROOT / name / "py.typed").is_file()] == []


def test_no_iteration_over_a_set() -> None:
    """Set order depends on the hash seed; it never reaches an output."""
    assert [place for path in sources(*PACKAGES) for place in facts_of(path).unordered] == []


def test_no_module_outgrows_its_room() -> None:
    """Modules stay within 800 lines."""

    def line_count(path: Path) -> int:
        return text_of(path).count("\n")

    everywhere = sources(*PACKAGES, "tools", "benchmarks", "tests")
    large = [path for path in everywhere if line_count(path) > MODULE_LINES]
    assert [str(p.relative_to(ROOT)) for p in large] == []


def test_comment_tags_are_the_four_known_ones() -> None:
    """Fixed tags are collected into docs/fidelity.md; others rot unseen."""
    unknown = re.compile(r"#\s*(TODO|FIXME|XXX|HACK)\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources(*PACKAGES, "tests", "benchmarks", "examples")
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if unknown.search(line)
    ]
    assert found == []


def test_module_names_say_what_they_hold() -> None:
    """No module is named for being handy."""
    bad = [p for p in sources(*PACKAGES) if p.stem in BANNED_MODULE_NAMES]
    assert bad == []


def git_lines(*arguments: str) -> list[str]:
    """What git prints about this checkout."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("not a git checkout")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("Close idle connections", "write `area: what changes`"),
        (f"broker: close {'idle ' * 12}connections", "it has 85 characters; shorten it to 72"),
        ("broker: what a client leaves when it goes", "'What' begins with a question word"),
        ("ingest, cli: what was said twice", "'said' is speech without a speaker"),
        ("cli: one answer for nobody", "'nobody' is archaic"),
    ],
)
def test_commit_subject_with_a_fault_is_found(subject: str, fault: str) -> None:
    """Form, length and riddles, each with its mend."""
    assert any(each.startswith(fault) for each in faults(subject))


@pytest.mark.parametrize(
    "subject",
    [
        "broker: release a disconnected client's share locks",
        "harness, docs: one check of field types, and plainer summaries",
        "Merge branch 'deadlines'",
        'Revert "broker: what a client leaves"',
    ],
)
def test_plain_commit_subject_has_no_fault(subject: str) -> None:
    """Subjects that name a thing and what changes, and those that git writes."""
    assert faults(subject) == []


def test_subjects_of_new_commits_are_plain() -> None:
    """The newest commits since the rule; a shallow clone shows fewer of them."""
    count = f"-{SUBJECTS}"
    newest = git_lines("log", count, "--no-merges", f"--since={SUBJECTS_SINCE}", "--format=%s")
    assert {subject: faults(subject) for subject in newest if faults(subject)} == {}


def files_with(pattern: str) -> list[str]:
    """Text files of the repo in which a pattern is found."""
    suffixes = {".py", ".md", ".toml", ".txt", ".sh", ".log", ".json", ".yml", ""}
    paths = [ROOT / name for name in git_lines("ls-files")]
    return [
        str(path.relative_to(ROOT))
        for path in paths
        if path.suffix in suffixes and path.is_file() and path != Path(__file__)
        if re.search(pattern, path.read_text(encoding="utf-8", errors="replace"))
    ]


def test_no_text_names_a_place_outside_the_project() -> None:
    """No path of a developer's machine and no registry host enters the repo."""
    hosts = r"pypi\.org|pythonhosted\.|maven\.org|npmjs\.|crates\.io"
    assert files_with(rf"/work/|/root/|/tmp/oracle|{hosts}") == []


def test_no_text_installs_the_project_from_an_index() -> None:
    """It is on none: `errors.remedy` names the packages of an extra, pages a clone or a wheel."""
    assert files_with(r"""pip install (-\S+ )*["']?coordinator-sim\b""") == []


def test_security_policy_names_tests_that_there_are() -> None:
    """Each promise about input of strangers is held by a test or a folder of tests."""
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="docs are not part of this install")
@pytest.mark.parametrize(
    "line",
    [
        *("import pickle", "from marshal import loads", "import dill.source", "exec(text)"),
        *("numpy.load(path, allow_pickle=True)", "yaml.load(text)", "pandas.read_pickle(path)"),
        "from pickle import Unpickler",
    ],
)
def test_a_line_that_runs_data_is_found(line: str) -> None:
    """Each of the ways that Python has."""
    assert any(runs_data(node) for node in ast.walk(ast.parse(line)))


def test_nothing_from_a_file_or_a_socket_is_run() -> None:
    """State, traces and messages are typed data: no pickle, no `eval`, no loader of objects."""
    found = {
        str(path.relative_to(ROOT))
        for path in sources(*PACKAGES, "tools", "benchmarks")
        if facts_of(path).running
    }
    assert found == REVIEWED_CALLS.keys()


@pytest.mark.parametrize("table", PLACES)
def test_number_stays_at_its_ceiling_and_only_falls(table: str) -> None:
    """Riddles, words of a dialect, lone Protocols, equal lines and small modules become fewer.

    `python -m tools.house_ceilings --show TABLE NAME` lists the places of a number.
    """
    assert complaints(counts(table), read_ceilings()[table]) == []


def test_generated_pages_are_fresh() -> None:
    """Pages generated from code say what the code says."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
