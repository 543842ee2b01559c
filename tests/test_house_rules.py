"""The house rules that no linter knows: sizes, determinism, comment tags, generated pages."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("coordinator_sim", "coordinator_sim_pytest", "conformance", "reports", "scenarios")
FUNCTION_LINES = 70
MODULE_LINES = 500
TEST_MODULE_LINES = 800
NESTING = 4
"""Blocks inside one another in a function; a loop with a guarded body is two."""
TAGS = ("QUIRK", "DEVIATION", "UNSPECIFIED", "INVARIANT")
BANNED_MODULE_NAMES = {"utils", "common", "helpers", "misc", "manager"}


def sources(*tops: str) -> Iterator[Path]:
    """Python files below the named folders, sorted."""
    for top in tops:
        yield from sorted((ROOT / top).rglob("*.py"))


@cache
def text_of(path: Path) -> str:
    """A file's text, read once for all rules."""
    return path.read_text(encoding="utf-8")


RUNNING_MODULES = frozenset(
    {"pickle", "_pickle", "pickletools", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
)
"""Modules that run what data says."""
RUNNING_CALLS = frozenset(
    {"eval", "exec", "Unpickler", "read_pickle", "unsafe_load", "full_load", "BaseManager"}
)
REVIEWED_CALLS = {
    "coordinator_sim/messages/codec/source.py": "compiles the codecs that are made of our schemas",
    "coordinator_sim/messages/codec/write_source.py": "constants of that source",
}
"""Modules with such calls, and why they run nothing from a file or a socket."""


def runs_data(node: ast.AST) -> bool:
    """Whether a node runs what data says, or imports what does."""
    if isinstance(node, ast.Import):
        return any(each.name.partition(".")[0] in RUNNING_MODULES for each in node.names)
    if isinstance(node, ast.ImportFrom):
        names = {each.name for each in node.names} & RUNNING_CALLS
        return (node.module or "").partition(".")[0] in RUNNING_MODULES or bool(names)
    if isinstance(node, ast.keyword):
        return node.arg == "allow_pickle"
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    return called.rpartition(".")[2] in RUNNING_CALLS or called in ("yaml.load", "torch.load")


def where(path: Path, node: ast.AST) -> str:
    """A place a reader can jump to."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def depth(node: ast.AST, level: int = 0) -> int:
    """The deepest nesting of blocks below a node."""
    blocks = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.AsyncFor, ast.AsyncWith)
    deepest = level
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and child in node.orelse
        step = 1 if isinstance(child, blocks) and not is_elif else 0
        deepest = max(deepest, depth(child, level + step))
    return deepest


def is_set_expression(node: ast.expr) -> bool:
    """Whether an expression plainly builds a set."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"set", "frozenset"}
    )


def iterated_by(node: ast.AST) -> list[ast.expr]:
    """What a loop, a comprehension or a call goes through."""
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        return [generator.iter for generator in node.generators]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"list", "tuple", "iter", "next"}
    ):
        return node.args[:1]
    return []


class Places(NamedTuple):
    """Where a file breaks a rule about its syntax tree."""

    long: list[str]
    nested: list[str]
    unordered: list[str]


@cache
def places_in(path: Path) -> Places:
    """Parse a file once for all rules; trees are too large to be kept."""
    found = Places([], [], [])
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            place = f"{where(path, node)} {node.name}"
            if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES:
                found.long.append(place)
            if depth(node) > NESTING:
                found.nested.append(place)
        found.unordered.extend(
            where(path, node) for each in iterated_by(node) if is_set_expression(each)
        )
    return found


def test_no_function_is_longer_than_a_screen() -> None:
    """Functions stay within 70 lines."""
    everywhere = sources(*PACKAGES, "tools", "benchmarks", "tests")
    assert [place for path in everywhere for place in places_in(path).long] == []


def test_blocks_do_not_nest_deeply() -> None:
    """No function nests its blocks more than four deep."""
    assert [place for path in sources(*PACKAGES) for place in places_in(path).nested] == []


def test_every_package_of_the_wheel_says_that_it_is_typed() -> None:
    """A type checker reads a package only where `py.typed` lies in it."""
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert [name for name in packages if not (ROOT / name / "py.typed").is_file()] == []


def test_no_iteration_over_a_set() -> None:
    """Set order depends on the hash seed; it never reaches an output."""
    assert [place for path in sources(*PACKAGES) for place in places_in(path).unordered] == []


def test_no_module_outgrows_its_room() -> None:
    """Modules stay within 500 lines, test modules within 800."""

    def line_count(path: Path) -> int:
        return text_of(path).count("\n")

    large = [p for p in sources(*PACKAGES, "tools", "benchmarks") if line_count(p) > MODULE_LINES]
    large += [p for p in sources("tests") if line_count(p) > TEST_MODULE_LINES]
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


def files_with(pattern: str) -> list[str]:
    """Text files of the repo in which a pattern is found."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    suffixes = {".py", ".md", ".toml", ".txt", ".sh", ".log", ".json", ".yml", ""}
    paths = [ROOT / name for name in listed.stdout.split()]
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
        for node in ast.walk(ast.parse(text_of(path)))
        if runs_data(node)
    }
    assert found == REVIEWED_CALLS.keys()


def test_generated_pages_are_fresh() -> None:
    """Pages generated from code say what the code says."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
