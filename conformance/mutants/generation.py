"""Every mutant of a module, and the module's code with one of them in it.

Kinds of changes: each takes a node of a syntax tree and gives what may stand there instead.

Text is left alone, and so are annotations, decorators, default values and asserts: no peer of a
coordinator sees them, or they are no code of a function's body.
"""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from pkgutil import iter_modules
from types import CodeType
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.museum.breaking import path_of, source_of
from coordinator_sim_conformance.mutants.mutant import Mutant

Change = tuple[str, ast.AST]
"""Name of the operator, and the node that replaces the one given."""

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}
_ERRORS: Final = "ErrorCode"
_OTHER_ERROR: Final = "UNKNOWN_SERVER_ERROR"


def changes_of(node: ast.AST) -> Iterator[Change]:
    """What may stand in place of this node, operator by operator."""
    for change in _OPERATORS.get(type(node), ()):
        yield from change(node)


def _comparison(node: ast.AST) -> Iterator[Change]:
    assert isinstance(node, ast.Compare)  # noqa: S101 - the table of operators says so
    for index, compared in enumerate(node.ops):
        operators = list(node.ops)
        operators[index] = _COMPARED[type(compared)]()
        yield "compare", ast.Compare(node.left, operators, node.comparators)


def _connective(node: ast.AST) -> Iterator[Change]:
    assert isinstance(node, ast.BoolOp)  # noqa: S101 - as above
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield "and-or", ast.BoolOp(other, node.values)


def _negation(node: ast.AST) -> Iterator[Change]:
    assert isinstance(node, ast.UnaryOp)  # noqa: S101 - as above
    if isinstance(node.op, ast.Not):
        yield "not", node.operand


def _arithmetic(node: ast.AST) -> Iterator[Change]:
    assert isinstance(node, ast.BinOp)  # noqa: S101 - as above
    other = _COMPUTED.get(type(node.op))
    texts = (ast.Constant, ast.JoinedStr)
    is_text = any(
        isinstance(side, texts) and not isinstance(getattr(side, "value", ""), int)
        for side in (node.left, node.right)
    )
    if other is not None and not is_text:
        yield "arithmetic", ast.BinOp(node.left, other(), node.right)


def _constant(node: ast.AST) -> Iterator[Change]:
    assert isinstance(node, ast.Constant)  # noqa: S101 - as above
    if isinstance(node.value, bool):
        yield "true-false", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "plus-one", ast.Constant(node.value + 1)
        yield "minus-one", ast.Constant(node.value - 1)


def _error(node: ast.AST) -> Iterator[Change]:
    assert isinstance(node, ast.Attribute)  # noqa: S101 - as above
    if isinstance(node.value, ast.Name) and node.value.id == _ERRORS and node.attr != _OTHER_ERROR:
        yield "error", ast.Attribute(node.value, _OTHER_ERROR, node.ctx)


def _condition(node: ast.AST) -> Iterator[Change]:
    assert isinstance(node, ast.If | ast.IfExp)  # noqa: S101 - as above
    for value in (True, False):
        parts = dict(ast.iter_fields(node)) | {"test": ast.Constant(value)}
        yield f"always-{str(value).lower()}", type(node)(**parts)


def _removal(node: ast.AST) -> Iterator[Change]:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_store = isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
    )
    if is_call or is_store or isinstance(node, ast.AugAssign | ast.Continue | ast.Break):
        yield "removed", ast.Pass()


_OPERATORS: Final[dict[type[ast.AST], tuple[Callable[[ast.AST], Iterator[Change]], ...]]] = {
    ast.Compare: (_comparison,),
    ast.BoolOp: (_connective,),
    ast.UnaryOp: (_negation,),
    ast.BinOp: (_arithmetic,),
    ast.Constant: (_constant,),
    ast.Attribute: (_error,),
    ast.If: (_condition,),
    ast.IfExp: (_condition,),
    ast.Expr: (_removal,),
    ast.Assign: (_removal,),
    ast.AugAssign: (_removal,),
    ast.Continue: (_removal,),
    ast.Break: (_removal,),
}


ROOM: Final = "coordinator_sim.coordinator"
_SHOWN: Final = 90
"""Characters of source shown of a change."""
_NOT_CHANGED: Final = frozenset({"annotation", "returns", "decorator_list", "args", "type_params"})
"""Fields of a syntax tree that are no code of a body."""
_TEXT: Final = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)

Put = Callable[[], None]
"""Puts a change into the tree it was found in; for good."""


def modules_of_core() -> tuple[str, ...]:
    """The modules of the group coordinator, in alphabetical order."""
    found: list[str] = []
    for room in (ROOM, *(f"{ROOM}.{part}" for part in ("classic", "common", "offsets", "scala"))):
        folder = path_of(room).with_suffix("")
        found += [f"{room}.{each.name}" for each in iter_modules([str(folder)]) if not each.ispkg]
    return tuple(sorted(found))


def module_named(name: str) -> str:
    """The module of the core with that name: whole, or `classic.join`, or the first `join`.

    Raises:
        ConfigError: there is none; the message has those that there are.
    """
    modules = modules_of_core()
    for module in modules:
        if name in {module, module.removeprefix(f"{ROOM}."), f"{module}.py"}:
            return module
    for module in modules:
        if name == module.rpartition(".")[2]:
            return module
    known = ", ".join(module.removeprefix(f"{ROOM}.") for module in modules)
    raise ConfigError(f"--module {name!r}: no module of {ROOM}; there are {known}")


def mutants_of(module: str) -> list[Mutant]:
    """Every mutant of a module, function by function."""
    return [mutant for mutant, _ in _sites(module, ast.parse(source_of(module)))]


def code_with(wanted: Mutant) -> CodeType:
    """The code of the mutant's module with its change.

    Raises:
        ConfigError: the module has no such mutant.
    """
    tree = ast.parse(source_of(wanted.module))
    for mutant, put in _sites(wanted.module, tree):
        if mutant.mutant_id == wanted.mutant_id:
            put()
            path = str(path_of(wanted.module))
            return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    raise ConfigError(f"no mutant {wanted.mutant_id}")


def _sites(module: str, tree: ast.Module) -> Iterator[tuple[Mutant, Put]]:
    for function, node in _functions(tree, ""):
        counts: dict[str, int] = {}
        for parent, field, index, child in _below(node):
            for operator, new in changes_of(child):
                counts[operator] = counts.get(operator, 0) + 1
                yield (
                    Mutant(
                        module=module,
                        function=function,
                        operator=operator,
                        ordinal=counts[operator],
                        line=getattr(child, "lineno", 0),
                        before=_shown(child),
                        after=_shown(new),
                    ),
                    partial(_put, parent, field, index, ast.copy_location(new, child)),
                )


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The outermost functions, and the methods of classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


Place = tuple[ast.AST, str, int | None, ast.AST]
"""A node's parent, the field that holds it, its index there or None, and the node."""


def _below(node: ast.AST) -> Iterator[Place]:
    """Every node of a function's code, in the order of the source."""
    for field, value in ast.iter_fields(node):
        if field in _NOT_CHANGED and not isinstance(node, ast.Call):
            continue
        values = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in values:
            if isinstance(child, ast.AST) and not isinstance(child, _TEXT):
                yield node, field, index, child
                yield from _below(child)


def _put(parent: ast.AST, field: str, index: int | None, new: ast.AST) -> None:
    if index is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[index] = new


def _shown(node: ast.AST) -> str:
    """The first line of a node's source, cut."""
    line = ast.unparse(node).partition("\n")[0]
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
