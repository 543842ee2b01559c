"""Facts of a module that the rules of the house read: one pass over its syntax tree for all."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.prose import ROOT, candidates

FUNCTION_LINES: Final = 70
NESTING: Final = 4
"""Blocks inside one another in a function; a loop with a guarded body is two."""
RUNNING_MODULES: Final = frozenset(
    {"pickle", "_pickle", "pickletools", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
)
"""Modules that run what data says."""
RUNNING_CALLS: Final = frozenset(
    {"eval", "exec", "Unpickler", "read_pickle", "unsafe_load", "full_load", "BaseManager"}
)
_LOADERS: Final = frozenset({"yaml.load", "torch.load"})
_LEAVES: Final = frozenset({ast.Name, ast.Constant, ast.Load, ast.Store})
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS: Final = (
    *(ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.AsyncFor, ast.AsyncWith),
)
_COMPREHENSIONS: Final = (ast.ListComp, ast.GeneratorExp, ast.DictComp)
_IMPORTS: Final = (ast.Import, ast.ImportFrom)
_DOCUMENTED: Final = frozenset({ast.Module, ast.ClassDef, *_FUNCTIONS})
_ITERATING: Final = frozenset({ast.For, ast.Call, *_COMPREHENSIONS})
_RUNNING: Final = frozenset({ast.Call, ast.keyword, *_IMPORTS})


class ClassFacts(NamedTuple):
    """A class: its bases and members by their names."""

    path: str
    name: str
    bases: tuple[str, ...]
    members: frozenset[str]

    @property
    def is_protocol(self) -> bool:
        """Whether it is declared as a Protocol."""
        return not {"Protocol", "typing.Protocol"}.isdisjoint(self.bases)


class ModuleFacts(NamedTuple):
    """What the pass finds; places are `path:line`, those of functions with the name.

    Attributes:
        riddles: Summaries that two rules of `tools.prose` find.
        names: Lines and names of the module, its classes, functions, arguments and attributes.
        imports: Names of modules, and of what is taken of them after a dot.
        lines: Number of lines.
        long: Functions of more than 70 lines.
        nested: Functions whose blocks nest more than four deep.
        unordered: Iterations over a set.
        running: What runs data or imports what does.
    """

    path: Path
    riddles: list[str]
    names: list[tuple[int, str]]
    classes: list[ClassFacts]
    imports: set[str]
    lines: int
    long: list[str]
    nested: list[str]
    unordered: list[str]
    running: list[str]


@cache
def text_of(path: Path) -> str:
    """A file's text, read once for all rules."""
    return path.read_text(encoding="utf-8")


def sources(*tops: str) -> Iterator[Path]:
    """Python files below the named folders of the repo, sorted."""
    for top in tops:
        yield from sorted((ROOT / top).rglob("*.py"))


@cache
def facts_of(path: Path) -> ModuleFacts:
    """Parse a module once for all rules; trees are too large to be kept."""
    gc.disable()  # A tree of ten thousand nodes has no garbage: looking for it costs half the time.
    try:
        return _facts_of(path)
    finally:
        gc.enable()


def _facts_of(path: Path) -> ModuleFacts:
    text = text_of(path)
    place = str(path.relative_to(ROOT))
    facts = ModuleFacts(path, [], [(1, path.stem)], [], set(), text.count("\n"), [], [], [], [])
    documented: list[ast.AST] = []
    for node in _nodes(ast.parse(text)):
        kind = type(node)
        if kind in _DOCUMENTED:
            documented.append(node)
            _declared(node, place, facts)
        elif kind is ast.arg:
            facts.names.append((node.lineno, node.arg))
        elif kind in _IMPORTS:
            module = f"{node.module}." if kind is ast.ImportFrom else ""
            facts.imports.update((module[:-1], *(f"{module}{each.name}" for each in node.names)))
        if kind in _ITERATING and any(map(is_set_expression, iterated_by(node))):
            facts.unordered.append(f"{place}:{getattr(node, 'lineno', 1)}")
        if kind in _RUNNING and runs_data(node):
            facts.running.append(f"{place}:{getattr(node, 'lineno', 1)}")
    facts.riddles.extend(
        f"{place}:{found.line} {found.name}" for found, _ in candidates(documented)
    )
    return facts


def _declared(node: ast.AST, place: str, facts: ModuleFacts) -> None:
    """Note a function or a class; nothing for a module."""
    if isinstance(node, ast.ClassDef):
        members = dict(_members(node))
        facts.names.append((node.lineno, node.name))
        facts.names.extend((line, name) for name, line in members.items() if line)
        bases = tuple(ast.unparse(base).partition("[")[0] for base in node.bases)
        facts.classes.append(ClassFacts(place, node.name, bases, frozenset(members)))
    elif isinstance(node, _FUNCTIONS):
        facts.names.append((node.lineno, node.name))
        if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES:
            facts.long.append(f"{place}:{node.lineno} {node.name}")
        if depth(node) > NESTING:
            facts.nested.append(f"{place}:{node.lineno} {node.name}")


def _nodes(tree: ast.AST) -> Iterator[Any]:
    """Every node but names, constants and their contexts, which are more than half of a tree."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        for value in vars(node).values():
            if isinstance(value, list):
                stack.extend(each for each in value if isinstance(each, ast.AST))
            elif isinstance(value, ast.AST) and type(value) not in _LEAVES:
                stack.append(value)


def _members(node: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Members with the line of an attribute, or 0 for a method, which is a function as well."""
    for each in _nodes(node):
        is_stored = type(each) is ast.Attribute and type(each.ctx) is ast.Store
        if is_stored and getattr(each.value, "id", None) == "self":
            yield each.attr, each.lineno
    for each in node.body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name, each.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, 0


def depth(node: ast.AST, level: int = 0) -> int:
    """The deepest nesting of blocks below a node."""
    deepest = level
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and child in node.orelse
        step = 1 if isinstance(child, _BLOCKS) and not is_elif else 0
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
    if isinstance(node, _COMPREHENSIONS):
        return [generator.iter for generator in node.generators]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"list", "tuple", "iter", "next"}
    ):
        return node.args[:1]
    return []


def runs_data(node: ast.AST) -> bool:
    """Whether a node runs what data says, or imports what does."""
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Name):
            return called.id in RUNNING_CALLS
        if not isinstance(called, ast.Attribute):
            return False
        is_loader = called.attr == "load" and ast.unparse(called) in _LOADERS
        return is_loader or called.attr in RUNNING_CALLS
    if isinstance(node, ast.Import):
        return any(each.name.partition(".")[0] in RUNNING_MODULES for each in node.names)
    if isinstance(node, ast.ImportFrom):
        names = {each.name for each in node.names} & RUNNING_CALLS
        return (node.module or "").partition(".")[0] in RUNNING_MODULES or bool(names)
    return isinstance(node, ast.keyword) and node.arg == "allow_pickle"
