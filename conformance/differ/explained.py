"""Understood differences: each is an entry of `explained.toml` with its source."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.errors import UNREADABLE_JSON, ConfigError, DataError
from coordinator_sim_conformance.differ.comparison import Difference

EXPLAINED: Final = Path(__file__).with_name("explained.toml")
DEVIATIONS: Final = Path(__file__).with_name("deviations")
"""Folder of what is known of other implementations."""


class Explanation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One understood difference.

    Args:
        explanation_id: Name in the summary.
        references: Kafkas that show it; none for whatever the file is used with.
        what: What the reference does, and what the simulator does.
        source: Place in Kafka's source.
        kind: API of the reply, `record`, or the op.
        path: A regular expression that the whole path of the differing field matches.
        ours: A regular expression that our value, as text, matches.
        theirs: A regular expression that the reference's value matches.
        continues: Whether both worlds are still alike behind it, so that its program goes on.
    """

    explanation_id: str = msgspec.field(name="id")
    references: tuple[str, ...] = ()
    what: str
    source: str
    kind: str
    path: str
    ours: str = ".*"
    theirs: str = ".*"
    continues: bool = False

    def covers(self, reference: str, difference: Difference) -> bool:
        """Whether it explains that difference."""
        return (
            (not self.references or reference in self.references)
            and difference.what == self.kind
            and re.fullmatch(self.path, difference.path) is not None
            and re.fullmatch(self.ours, str(difference.ours), re.DOTALL) is not None
            and re.fullmatch(self.theirs, str(difference.theirs), re.DOTALL) is not None
        )


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    explained: tuple[Explanation, ...] = ()


def read_explanations(path: Path = EXPLAINED) -> tuple[Explanation, ...]:
    """Return the explanations of a file.

    Raises:
        DataError: the file has another form.
    """
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_File).explained
    except UNREADABLE_JSON as error:
        raise DataError(f"{path}: {error}") from error


def all_explanations(more: Sequence[str]) -> tuple[Explanation, ...]:
    """Return the explanations of `explained.toml` and of others.

    Args:
        more: Names of the folder `deviations`, or paths of TOML files.

    Raises:
        ConfigError: neither a name nor a file.
        DataError: a file has another form.
    """
    found = list(read_explanations())
    for each in more:
        shipped = DEVIATIONS / f"{each}.toml"
        path = shipped if shipped.is_file() else Path(each)
        if not path.is_file():
            known = ", ".join(sorted(file.stem for file in DEVIATIONS.glob("*.toml")))
            raise ConfigError(f"--explained {each}: neither a file nor one of {known}")
        found += read_explanations(path)
    return tuple(found)


def explanation_of(
    explanations: tuple[Explanation, ...], reference: str, difference: Difference
) -> Explanation | None:
    """Return the explanation of a difference, or None."""
    for explanation in explanations:
        if explanation.covers(reference, difference):
            return explanation
    return None
