"""Ranges in names: `foo[1-3]` stands for foo1, foo2 and foo3.

Source: kafka trunk, trogdor/.../trogdor/common/StringExpander.java, workload/ConsumeBenchSpec.java.
"""

import re
from collections.abc import Iterable
from math import prod
from typing import Final

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.kafka.orders.iteration_order import java_hash_order

MAX_INT: Final = 2**31 - 1
_MOST_DIGITS: Final = 10
MOST_NAMES: Final = 100_000
"""Names that ranges may stand for together.

DEVIATION: Kafka's agent and coordinator expand until their memory is full.
"""
MOST_CHARACTERS: Final = 32 << 20
"""Characters of all these names together."""
_RANGE: Final = re.compile(r"(.*)\[([0-9]*)-([0-9]*)\](.*)")
_EACH_RANGE: Final = re.compile(r"\[([0-9]+)-([0-9]+)\]")


class InvalidName(CoordinatorSimError):
    """A name has a range or a form that cannot be."""


def check_count(names: Iterable[str], *, repeatedly: bool = False) -> None:
    """Refuse names that stand for too many, before one of them is expanded.

    Args:
        names: As a spec has them.
        repeatedly: Whether every range is expanded, or the last one of each name.

    Raises:
        InvalidName: they stand for more than `MOST_NAMES` or `MOST_CHARACTERS`.
    """
    count = size = 0
    for name in names:
        ranges = _EACH_RANGE.findall(name)[0 if repeatedly else -1 :]
        stands_for = prod(max(1, _bound(last) - _bound(first) + 1) for first, last in ranges)
        count += stands_for
        size += stands_for * len(name)
        if count > MOST_NAMES or size > MOST_CHARACTERS:
            raise InvalidName(
                f"{name[:100]!r} brings the topic names to {count} of {size} characters; the most "
                f"are {MOST_NAMES} of {MOST_CHARACTERS}: name a smaller range"
            )


def expand(name: str) -> tuple[str, ...]:
    """The names that the last range of a name stands for, in the order of Java's hash set.

    Earlier ranges stay as they are. A name without a range stands for itself.

    Raises:
        InvalidName: the range ends before it starts, or an end is missing or no 32-bit number.
    """
    match = _RANGE.fullmatch(name)
    if match is None:
        return (name,)
    first, last = _bound(match[2]), _bound(match[3])
    if last < first:
        raise InvalidName(f"Invalid range: start {first} is higher than end {last}")
    return tuple(java_hash_order(f"{match[1]}{n}{match[4]}" for n in range(first, last + 1)))


def _bound(digits: str) -> int:
    number = digits.lstrip("0") or digits[-1:]
    # Python reads no number of more than 4,300 digits.
    if not number or len(number) > _MOST_DIGITS or int(number) > MAX_INT:
        raise InvalidName(f'For input string: "{digits}"')
    return int(number)


def expand_repeatedly(name: str) -> tuple[str, ...]:
    """The names that all ranges of a name stand for, in the order of Java's hash set.

    QUIRK: a range of one number ends it, so that `a[1-2][5-5]` stands for `a[1-2]5`.
    Source: ConsumeBenchSpec.expandTopicName.

    Raises:
        InvalidName: as for `expand`.
    """
    names = expand(name)
    if len(names) == 1:
        return names
    # Ends because each expansion has one range fewer.
    return tuple(java_hash_order(inner for one in names for inner in expand_repeatedly(one)))
