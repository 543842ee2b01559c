"""Kinds of changes: each takes a node of a syntax tree and gives what may stand there instead.

Text is left alone, and so are annotations, decorators, default values and asserts: no peer of a
coordinator sees them, or they are no code of a function's body.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Final

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
