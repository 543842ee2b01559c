"""An exact count of the work that the library does: what is gone through, searched and copied.

Modules are compiled with a count beside everything whose cost grows with its operands:

- a function that is entered, a turn of a loop or of a comprehension: 1;
- `in` on anything but a dict, set or range, and `==` of two containers: their length;
- `+`, `|` and the like on containers, slices, `*` and `**` displays, f-strings: what they copy;
- built-in functions and methods that go through a container (`tuple`, `sorted`, `index`,
  `insert`, `join`, ...): its length. A sort counts as its length, without the logarithm.

The count is the same in every run and on every machine, which a time is not; and unlike a count of
calls alone it sees a search in a list, and a tuple that is put together piece by piece.
"""

import ast
import sys
from collections import deque
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from msgspec import Struct

_METER: Final = "_work_"
"""The name under which a counted module reaches the meter."""
_SIZED: Final = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    bytes,
    bytearray,
    str,
    deque,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)
_SEARCHED: Final = (list, tuple, deque, bytes, bytearray, str, type({}.values()))
"""What `in` goes through; the others hash."""
_COMPARED: Final = (list, tuple, dict, set, frozenset, bytes, bytearray, str, deque)
_FUNCTIONS: Final = frozenset(
    [
        *("tuple", "list", "set", "frozenset", "dict", "sorted", "sum", "min", "max", "any", "all"),
        *("bytes", "bytearray", "str", "deque", "Counter", "repr", "ascii", "hash", "reduce"),
        "OrderedDict",
    ]
)
"""Built-in names that go through their arguments."""
_ARGUMENT_METHODS: Final = frozenset(
    [
        *("extend", "update", "fromkeys", "join", "union", "intersection", "difference"),
        *("symmetric_difference", "issubset", "issuperset", "isdisjoint", "extendleft", "unpack"),
        *("iter_unpack", "writelines"),
    ]
)
"""Methods that go through their arguments, or through what they answer."""
_OBJECT_METHODS: Final = frozenset(
    [
        *("index", "count", "remove", "copy", "insert", "reverse", "sort", "replace", "split"),
        *("rsplit", "splitlines", "find", "rfind", "encode", "decode", "lower", "upper", "strip"),
        *("translate", "hex", "tobytes", "union", "intersection", "difference"),
        *("symmetric_difference", "partition", "rpartition"),
    ]
)
"""Methods that go through their own object."""
_OPERATORS: Final = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub, ast.Mod)


def _length(value: object) -> int:
    return len(value) if isinstance(value, _SIZED) else 0  # type: ignore[arg-type]


def _equality(left: object, right: object) -> int:
    """What a comparison of these may go through, two levels deep."""
    if left is right:
        return 0
    if isinstance(left, Struct) and type(left) is type(right):
        return sum(
            min(_length(getattr(left, name)), _length(getattr(right, name)))
            for name in left.__struct_fields__
        )
    if isinstance(left, _COMPARED) and isinstance(right, _COMPARED):
        return min(len(left), len(right))
    return 0


class Meter:
    """Counts what counted modules do; they call its methods.

    Attributes:
        count: Work so far.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def tick(self) -> bool:
        """Count one turn or call; true, so that a comprehension may ask it as a condition."""
        self.count += 1
        return True

    def found(self, value: object, where: Any) -> bool:  # noqa: ANN401 - any container
        """Answer `value in where`."""
        if isinstance(where, _SEARCHED):
            self.count += len(where)
        return value in where

    def missing(self, value: object, where: Any) -> bool:  # noqa: ANN401 - any container
        """Answer `value not in where`."""
        return not self.found(value, where)

    def equal(self, left: object, right: object) -> Any:  # noqa: ANN401 - as the operands say
        """Answer `left == right`."""
        self.count += _equality(left, right)
        return left == right

    def unequal(self, left: object, right: object) -> Any:  # noqa: ANN401 - as the operands say
        """Answer `left != right`."""
        self.count += _equality(left, right)
        return left != right

    def copied(self, value: Any) -> Any:  # noqa: ANN401 - handed through
        """Count what has just been put together, or is about to be spread."""
        self.count += _length(value)
        return value

    def sliced(self, value: Any) -> Any:  # noqa: ANN401 - handed through
        """Count a slice; a view copies nothing."""
        return self.copied(value)

    def added(self, left: object, value: Any) -> Any:  # noqa: ANN401 - handed through
        """Count the right side of `left += value`, and `left` where it is copied for it."""
        self.count += _length(value)
        if isinstance(left, (tuple, bytes, str, frozenset)):
            self.count += len(left)
        return value

    def shortened(self, value: Any) -> Any:  # noqa: ANN401 - handed through
        """Count what `del value[...]` may move."""
        if isinstance(value, list):
            self.count += len(value)
        return value

    def function(self, called: Callable[..., Any], *args: Any, **named: Any) -> Any:  # noqa: ANN401
        """Call a built-in function that goes through its arguments."""
        answer = called(*args, **named)
        self.count += max(sum(map(_length, args)), _length(answer))
        return answer

    def method(self, holder: Any, name: str, *args: Any, **named: Any) -> Any:  # noqa: ANN401
        """Call a method that goes through its object or its arguments, if it is built in."""
        answer = getattr(holder, name)(*args, **named)
        if isinstance(holder, (*_SIZED, type, memoryview)):
            if name in _OBJECT_METHODS or (name == "pop" and args and isinstance(holder, list)):
                self.count += _length(holder)
            if name in _ARGUMENT_METHODS:
                self.count += max(sum(map(_length, args)), _length(answer))
        return answer


class _Counted(ast.NodeTransformer):
    """Puts the meter into a module's tree."""

    def _call(self, name: str, *args: ast.expr) -> ast.Call:
        meter = ast.Name(_METER, ast.Load())
        return ast.Call(ast.Attribute(meter, name, ast.Load()), list(args), [])

    # -- turns -----------------------------------------------------------------------------

    def _ticking(self, node: Any) -> Any:  # noqa: ANN401 - any statement with a body
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(self._call("tick")))
        return node

    visit_For = visit_While = _ticking  # noqa: N815 - names of `ast`

    def _function(self, node: Any) -> Any:  # noqa: ANN401 - both kinds of functions
        annotations = (node.returns, node.args)
        node.body = [self.visit(each) for each in node.body]
        node.body.insert(0, ast.Expr(self._call("tick")))
        node.returns, node.args = annotations
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815 - names of `ast`

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Count a lambda that is entered."""
        body = self.visit(node.body)
        node.body = ast.IfExp(self._call("tick"), body, ast.Constant(None))
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Leave annotations alone."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Count what is taken apart into a name and a rest."""
        self.generic_visit(node)
        parts = [each for target in node.targets for each in ast.walk(target)]
        if any(isinstance(each, ast.Starred) for each in parts):
            node.value = self._call("copied", node.value)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Count a turn before its conditions."""
        self.generic_visit(node)
        if not node.is_async:
            node.ifs.insert(0, self._call("tick"))
        return node

    # -- searches and copies ---------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Count searches and comparisons."""
        self.generic_visit(node)
        names: dict[type, str] = {
            ast.In: "found",
            ast.NotIn: "missing",
            ast.Eq: "equal",
            ast.NotEq: "unequal",
        }
        name = names.get(type(node.ops[0]))
        if name is None or len(node.ops) > 1:
            return node
        return self._call(name, node.left, node.comparators[0])

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Count what an operator puts together."""
        self.generic_visit(node)
        return self._call("copied", node) if isinstance(node.op, _OPERATORS) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Count both sides, where the left one can be asked twice."""
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        asked = not any(isinstance(each, ast.Call) for each in ast.walk(before))
        self.generic_visit(node)
        node.value = self._call("added", before if asked else ast.Constant(None), node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Count slices that are read, and lists of which something is deleted."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Del):
            node.value = self._call("shortened", node.value)
        elif isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Slice):
            return self._call("sliced", node)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        """Count what is spread."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._call("copied", node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """Count dicts that are spread into another."""
        self.generic_visit(node)
        node.values = [
            value if key is not None else self._call("copied", value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Count the characters of a text."""
        self.generic_visit(node)
        return self._call("copied", node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        """Leave the specification of a format as it is."""
        node.value = self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Count built-in functions and methods that go through something."""
        self.generic_visit(node)
        called = node.func
        for named in node.keywords:
            if named.arg is None:
                named.value = self._call("copied", named.value)
        if isinstance(called, ast.Name) and called.id in _FUNCTIONS:
            counted = self._call("function", called, *node.args)
        elif isinstance(called, ast.Attribute) and (
            called.attr in _ARGUMENT_METHODS | _OBJECT_METHODS
            or (called.attr == "pop" and node.args)
        ):
            if ast.unparse(called.value) == "super()":
                return node
            counted = self._call("method", called.value, ast.Constant(called.attr), *node.args)
        else:
            return node
        counted.keywords = node.keywords
        return counted

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave patterns alone."""
        node.guard = self.visit(node.guard) if node.guard is not None else None
        node.body = [self.visit(each) for each in node.body]
        return node


def counted_code(source: bytes | str, path: str) -> CodeType:
    """A module's code with the meter in it, under the name `_work_`."""
    tree = _Counted().visit(ast.parse(source, path))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Loader(SourceFileLoader):
    """Loads a module from its source, counted."""

    def __init__(self, name: str, path: str, meter: Meter) -> None:
        super().__init__(name, path)
        self._meter = meter

    def get_code(self, fullname: str) -> CodeType:
        """The counted code; nothing is kept on the disk."""
        path = self.get_filename(fullname)
        return counted_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with the meter at hand."""
        vars(module)[_METER] = self._meter
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the modules of one package for the loader above."""

    def __init__(self, package: str, meter: Meter) -> None:
        self._package = package
        self._meter = meter

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if it is one of the package's."""
        if fullname.partition(".")[0] != self._package:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self._meter)
        return spec


def count_work_of(package: str) -> Meter:
    """Count what modules of a package do that are imported from now on.

    Raises:
        RuntimeError: some of them were imported before and would not be counted.
    """
    early = [name for name in sys.modules if name.partition(".")[0] == package]
    if early:
        raise RuntimeError(f"{early[0]} is imported already, and would not be counted")
    meter = Meter()
    sys.meta_path.insert(0, _Finder(package, meter))
    return meter
