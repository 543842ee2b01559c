"""Ranges in scenario files: many members, topics or happenings written as one.

A file may say `"name": "consumer-{1..37}"` for 37 members that differ by their number alone, and
of a happening how far apart it meets each of them (`apart_ms`) and how often all of it comes again
(`times`, `again_ms`). `expanded` turns such JSON into the plain form that a scenario is made of;
`folded` is its reverse.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator_sim.errors import ScenarioError

Entry = dict[str, Any]
"""A JSON object of a scenario file: a topic, a group, a member or a happening."""

RANGE: Final = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")
MAX_ENTRIES: Final = 1_000_000
"""Entries that one range may stand for."""
_FOLDED_FROM: Final = 3
"""Entries from which on a range is shorter than the list."""
_NUMBERED: Final = re.compile(r"(.*?)(0|[1-9]\d{0,8})", re.DOTALL)
_REPEATS: Final = ("apart_ms", "times", "again_ms")


def expanded(data: Mapping[str, Any]) -> Entry:
    """Return a scenario's JSON with an entry for each member, topic and happening.

    Args:
        data: The JSON object of a scenario or task file; parts of a wrong form are left alone.

    Raises:
        ScenarioError: a range is empty or too long, or a repetition is not a whole number.
    """
    found = dict(data)
    for field in ("topics", "groups"):
        found[field] = _each(data, field, _numbered)
    found["groups"] = _of_groups(found["groups"], _numbered, _names)
    found["happenings"] = _each(data, "happenings", _repeated)
    return {name: value for name, value in found.items() if name in data}


def folded(data: Mapping[str, Any]) -> Entry:
    """Return a scenario's JSON with ranges for consecutive entries that differ by number alone."""
    found = dict(data)
    found["topics"] = _fold_numbers(data["topics"])
    found["groups"] = [
        {
            name: _fold_names(value)
            if name == "topics"
            else _fold_numbers(value)
            if name in {"members", "workers"}
            else value
            for name, value in group.items()
        }
        for group in data["groups"]
    ]
    found["happenings"] = _fold_times(_fold_numbers(data["happenings"], at="at_ms"))
    return found


def _of_groups(
    groups: Any,  # noqa: ANN401 - JSON of any form
    of_entry: Callable[[Entry], Iterator[Entry]],
    of_names: Callable[[Sequence[Any]], list[Any]],
) -> Any:  # noqa: ANN401 - as above
    if not isinstance(groups, list):
        return groups
    found = []
    for group in groups:
        if not isinstance(group, dict):
            found.append(group)
            continue
        changed = dict(group)
        for field in ("members", "workers"):
            if field in group:
                changed[field] = _each(group, field, of_entry)
        if isinstance(group.get("topics"), list):
            changed["topics"] = of_names(group["topics"])
        found.append(changed)
    return found


def _each(data: Mapping[str, Any], field: str, of_entry: Callable[[Entry], Iterator[Entry]]) -> Any:  # noqa: ANN401 - JSON of any form
    """Return a list of entries with each replaced by what it stands for."""
    entries = data.get(field)
    if not isinstance(entries, list):
        return entries
    found: list[Any] = []
    for entry in entries:
        found.extend(of_entry(entry) if isinstance(entry, dict) else [entry])
    return found


def _numbered(entry: Entry) -> Iterator[Entry]:
    """Yield an entry for each number of the ranges in its strings, which run together."""
    ranges = {
        name: (value, bounds)
        for name, value in entry.items()
        if isinstance(value, str) and (bounds := _bounds(value)) is not None
    }
    if not ranges:
        yield entry
        return
    lengths = {len(bounds) for _, bounds in ranges.values()}
    if len(lengths) > 1:
        named = ", ".join(repr(value) for value, _ in ranges.values())
        raise ScenarioError(f"{named}: ranges of one entry must be equally long")
    for index in range(lengths.pop()):
        yield entry | {
            name: RANGE.sub(str(bounds[index]), value, count=1)
            for name, (value, bounds) in ranges.items()
        }


def _names(names: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for name in names:
        bounds = _bounds(name) if isinstance(name, str) else None
        found += [name] if bounds is None else [RANGE.sub(str(n), name, count=1) for n in bounds]
    return found


def _bounds(text: str) -> range | None:
    """Return the numbers of the first range in a text; None without one."""
    found = RANGE.search(text)
    if found is None:
        return None
    low, high = int(found[1]), int(found[2])
    if not low <= high < low + MAX_ENTRIES:
        raise ScenarioError(
            f"{text!r}: a range goes from a number to one that is not smaller, "
            f"over at most {MAX_ENTRIES:,} numbers"
        )
    return range(low, high + 1)


def _repeated(entry: Entry) -> Iterator[Entry]:
    """Yield the happenings that one stands for: at each member, as often as it says."""
    plain = {name: value for name, value in entry.items() if name not in _REPEATS}
    members = list(_numbered(plain))
    apart_ms, times, again_ms = (
        _whole(entry, name, low) for name, low in zip(_REPEATS, (0, 1, 0), strict=True)
    )
    if times * len(members) > MAX_ENTRIES:
        raise ScenarioError(
            f"times={times} of {len(members)} happenings: at most {MAX_ENTRIES:,} in all"
        )
    at_ms = plain.get("at_ms")
    if not isinstance(at_ms, int) or (len(members) == 1 and times == 1):
        yield from members
        return
    for time in range(times):
        for index, member in enumerate(members):
            yield member | {"at_ms": at_ms + time * again_ms + index * apart_ms}


def _whole(entry: Entry, name: str, low: int) -> int:
    value = entry.get(name, low)
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ScenarioError(f"{name}={value!r} of a happening: must be a whole number from {low}")
    return value


def _fold_numbers(entries: Sequence[Entry], at: str = "") -> list[Entry]:
    """Fold runs of entries whose numbered strings count up and whose `at` goes on evenly."""
    found: list[Entry] = []
    start = 0
    while start < len(entries):
        end = start + 1
        while end < len(entries) and _follows(entries, start, end, at):
            end += 1
        if end - start < _FOLDED_FROM:
            found += entries[start:end]
        else:
            found.append(_run_of(entries[start:end], at))
        start = end
    return found


def _follows(entries: Sequence[Entry], start: int, index: int, at: str) -> bool:
    first, entry = entries[start], entries[index]
    if first.keys() != entry.keys():
        return False
    counting = _counting(first, entries[start + 1])
    if not counting:
        return False
    for name, value in entry.items():
        if name == at:
            step = entries[start + 1][at] - first[at]
            if step < 0 or value - first[at] != step * (index - start):
                return False
        elif name in counting:
            prefix, number = counting[name]
            if value != f"{prefix}{number + index - start}":
                return False
        elif value != first[name]:
            return False
    return True


def _counting(first: Entry, second: Entry) -> dict[str, tuple[str, int]]:
    """Return the strings that end in a number and differ in the next entry: prefix and number."""
    found = {}
    for name, value in first.items():
        if isinstance(value, str) and value != second.get(name):
            numbered = _NUMBERED.fullmatch(value)
            if numbered is not None:
                found[name] = (numbered[1], int(numbered[2]))
    return found


def _run_of(entries: Sequence[Entry], at: str) -> Entry:
    first, last = entries[0], len(entries) - 1
    run = first | {
        name: f"{prefix}{{{number}..{number + last}}}"
        for name, (prefix, number) in _counting(first, entries[1]).items()
    }
    return run | {"apart_ms": entries[1][at] - first[at]} if at else run


def _fold_names(names: Sequence[str]) -> list[str]:
    return [entry["name"] for entry in _fold_numbers([{"name": name} for name in names])]


def _fold_times(happenings: Sequence[Entry]) -> list[Entry]:
    """Fold happenings, or runs of them, that come again and again after equal times."""
    found: list[Entry] = []
    start = 0
    while start < len(happenings):
        first = happenings[start]
        end = start + 1
        again_ms = -1
        while end < len(happenings) and happenings[end] | {"at_ms": first["at_ms"]} == first:
            step_ms = happenings[end]["at_ms"] - happenings[end - 1]["at_ms"]
            if step_ms < 0 or step_ms != (again_ms if end > start + 1 else step_ms):
                break
            again_ms = step_ms
            end += 1
        if end - start < _FOLDED_FROM:
            found += happenings[start:end]
        else:
            found.append(first | {"times": end - start, "again_ms": again_ms})
        start = end
    return found
