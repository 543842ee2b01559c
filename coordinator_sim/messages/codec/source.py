"""Python source that is written line by line, and what each line is about.

The readers and writers of messages are functions whose source is made from a message's layout and
compiled at its first use. Their lines test little: a line that fails is looked up here, and the
function that stands beside it says what is wrong with the bytes or the value.
"""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, cast

from coordinator_sim.errors import CoordinatorSimError

Scope = Mapping[str, Any]
"""The local variables of a compiled function."""
Explain = Callable[[Scope, Exception], CoordinatorSimError]
"""Says what is wrong, by the variables and the fault of the line that failed."""

_INDENT: Final = "    "


class Source:
    """The source of one function.

    Args:
        name: Of the function, for tracebacks.
    """

    __slots__ = ("_constants", "_depth", "_explanations", "_lines", "_name", "_variables")

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: list[str] = []
        self._explanations: dict[int, Explain] = {}
        self._constants: dict[str, object] = {}
        self._depth = 0
        self._variables = 0

    def add(self, line: str, explain: Explain | None = None) -> None:
        """Add a line; `explain` says what is wrong where it fails."""
        self._lines.append(_INDENT * self._depth + line)
        if explain is not None:
            self._explanations[len(self._lines)] = explain

    def indent(self, header: str, explain: Explain | None = None) -> None:
        """Add the line that begins a block."""
        self.add(header, explain)
        self._depth += 1

    def dedent(self, count: int = 1) -> None:
        """End blocks."""
        self._depth -= count

    def variable(self) -> str:
        """A variable that no other line has."""
        self._variables += 1
        return f"v{self._variables}"

    def constant(self, prefix: str, value: object) -> str:
        """The name by which the function knows a value."""
        for name, known in self._constants.items():
            if known is value:
                return name
        name = f"{prefix}{len(self._constants)}"
        self._constants[name] = value
        return name

    def text(self) -> str:
        """The whole source."""
        return "\n".join(self._lines) + "\n"

    def compiled(self) -> Callable[..., Any]:
        """The function."""
        scope = {**self._constants, "explained": self._explained}
        exec(compile(self.text(), f"<{self._name}>", "exec"), scope)  # noqa: S102 - our own source
        return cast("Callable[..., Any]", scope[self._name])

    def _explained(self, fault: Exception) -> Exception:
        """What is wrong, by the line that failed; a fault of no such line is a bug and stays."""
        traceback: TracebackType | None = fault.__traceback__
        if traceback is None or traceback.tb_lineno not in self._explanations:
            return fault
        explain = self._explanations[traceback.tb_lineno]
        return explain(traceback.tb_frame.f_locals, fault)
