"""A mutant of a function as data, and what became of it."""

from enum import StrEnum, unique

from msgspec import Struct


class Mutant(Struct, frozen=True, kw_only=True):
    """One change of one expression or statement inside a function.

    Args:
        module: Module whose source is changed.
        function: Qualified name of the outermost function.
        operator: Kind of change, a kind of `generation`.
        ordinal: Number of the change among those of its kind in the function, from 1.
        line: Line of the change; for the reader, no part of the id.
        before: Source of what is changed, in Python's own layout.
        after: Source of what stands there instead.
    """

    module: str
    function: str
    operator: str
    ordinal: int
    line: int
    before: str
    after: str

    @property
    def mutant_id(self) -> str:
        """Name that stays when lines move: `coordinator.classic.join:_park:compare:2`."""
        short = self.module.removeprefix("coordinator_sim.")
        return f"{short}:{self.function}:{self.operator}:{self.ordinal}"


@unique
class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"


class Trial(Struct, frozen=True, kw_only=True):
    """One mutant's fate.

    Args:
        killed_by: The first case or program that noticed; empty for a survivor.
        reason: Why a survivor may live; empty where nobody has said.
    """

    mutant: Mutant
    fate: Fate
    killed_by: str = ""
    reason: str = ""

    @property
    def is_unexplained(self) -> bool:
        """Whether it survived without a reason."""
        return self.fate is Fate.SURVIVED and not self.reason
