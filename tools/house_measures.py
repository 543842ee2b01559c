"""What `tools.house_ceilings` counts in the text of the packages: a list of places by name."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final

from tools.house_facts import ClassFacts, ModuleFacts, facts_of, sources, text_of
from tools.prose import PACKAGES, ROOT, room_of

_DIALECT: Final = """
told tells said says saying asked known wanted given kept keeps gone goes placed place places heads
beat beats goal goals muster course cast seat seats player players actor actors meddling calm
elision garbage gifts scribe news act acts beside exchange landing storey draft stage heard whoever
nobody anew
"""
DIALECT: Final = frozenset(_DIALECT.split())
"""Words of this house that neither Kafka nor the field has for its things."""
COORDINATOR_ROOMS: Final = (
    "coordinator_sim/coordinator",
    "coordinator_sim/broker/share_coordinator",
    "coordinator_sim/broker/transactions",
)
EQUAL_LINES: Final = 8
SMALL_MODULE_LINES: Final = 90
IMPLEMENTATIONS: Final = 2
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PACKAGE_OF: Final = {
    f"coordinator_sim_{name}": name for name in ("conformance", "reports", "scenarios")
}
"""Folders of the packages whose names differ."""
Places = dict[str, list[str]]


@cache
def _library() -> list[ModuleFacts]:
    return [facts_of(path) for path in sources(*PACKAGES)]


def riddles() -> Places:
    """Summaries of docstrings that two rules of `tools.prose` find, by room."""
    found: Places = defaultdict(list)
    for module in _library():
        found[room_of(module.path)] += module.riddles
    return found


def dialect() -> Places:
    """Names of modules, classes, functions, arguments and attributes with such a word, by room."""
    found: Places = defaultdict(list)
    for module in _library():
        place = module.path.relative_to(ROOT)
        found[room_of(module.path)] += [
            f"{place}:{line} {name}"
            for line, name in module.names
            if not DIALECT.isdisjoint(word.lower() for word in _WORD.findall(name))
        ]
    return found


def protocols() -> Places:
    """Protocols with fewer than two implementations, those of tests included.

    A class implements a Protocol whose members it has or inherits. One whose only member is
    `__call__` stands for functions and is not counted.
    """
    modules = [*_library(), *map(facts_of, sources("tests", "tools", "benchmarks"))]
    classes = [each for module in modules for each in module.classes]
    by_name = defaultdict(list)
    for each in classes:
        by_name[each.name].append(each)

    @cache
    def all_members(each: ClassFacts) -> frozenset[str]:
        inherited = (
            other
            for base in each.bases
            for other in by_name[base.rpartition(".")[2]]
            if other != each
        )
        return each.members.union(*map(all_members, inherited))

    concrete = [all_members(each) for each in classes if not each.is_protocol]
    found = {}
    for module in _library():
        for each in filter(lambda each: each.is_protocol, module.classes):
            needed = all_members(each)
            count = sum(needed <= members for members in concrete)
            if needed != {"__call__"} and count < IMPLEMENTATIONS:
                found[f"{each.path}: {each.name}"] = [f"{count} implementations"]
    return found


def equal_lines() -> Places:
    """Runs of eight equal lines in two rooms of the coordinators.

    Blank lines, docstrings and imports do not count, nor does indentation.
    """
    first: dict[tuple[str, ...], tuple[str, str]] = {}
    found = {}
    for path in sources(*COORDINATOR_ROOMS):
        room = "/".join(path.relative_to(ROOT).parts[:-1])
        lines = _code_lines(path)
        for start in range(len(lines) - EQUAL_LINES + 1):
            run = tuple(text for _, text in lines[start : start + EQUAL_LINES])
            place = f"{path.relative_to(ROOT)}:{lines[start][0]}"
            elsewhere = first.setdefault(run, (room, place))
            if elsewhere[0] != room:
                found[run] = f"{elsewhere[1]} = {place}"
    return {"runs of eight lines": list(found.values())}


def _code_lines(path: Path) -> list[tuple[int, str]]:
    """Numbers and texts of the lines that are compared."""
    text = text_of(path)
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            line, end = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
            left_out.update(range(line, end + 1))
    numbered = enumerate(map(str.strip, text.splitlines()), 1)
    return [(number, line) for number, line in numbered if line and number not in left_out]


def small_modules() -> Places:
    """Modules of fewer than 90 lines whose only importer stands in their folder."""
    by_name = {_module_name(module.path): module for module in _library()}
    importers: dict[str, list[Path]] = defaultdict(list)
    for module in [*_library(), *map(facts_of, sources("tools", "benchmarks"))]:
        for name in module.imports & by_name.keys():
            importers[name].append(module.path)
    found = [
        str(by_name[name].path.relative_to(ROOT))
        for name, paths in importers.items()
        if by_name[name].lines < SMALL_MODULE_LINES
        and [path.parent for path in paths] == [by_name[name].path.parent]
        and paths[0].name != "__init__.py"
    ]
    return {"modules with one neighbour": sorted(found)}


def _module_name(path: Path) -> str:
    top, *rest = path.relative_to(ROOT).with_suffix("").parts
    package = {folder: name for name, folder in _PACKAGE_OF.items()}.get(top, top)
    return ".".join((package, *rest))
