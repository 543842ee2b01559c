"""A failure as text: the last commands of the groups involved, and both answers."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from coordinator_sim_conformance.differ.comparison import Difference
from coordinator_sim_conformance.differ.loop import Exchange

Json = dict[str, Any]

_SHOWN: Final = 12
"""Number of commands shown before the failing one."""
_WIDTH: Final = 240
"""Number of characters shown of a line."""


def tell(
    exchanges: Sequence[Exchange], difference: Difference, reference: str, *, shown: int = _SHOWN
) -> Iterator[str]:
    """Yield the lines of a short transcript that ends with the difference.

    Args:
        exchanges: Exchanges up to the command whose answers differ.
        difference: Values of both sides.
        reference: Name of the reference in the text.
        shown: Number of commands shown before the failing one.
    """
    *before, last = exchanges
    concerned = _groups(last.command) | _replied_groups(last, exchanges)
    told = [each for each in before if _concerns(each.command, concerned)]
    if len(told) > shown:
        yield f"... {len(told) - shown} commands of these groups before"
    for exchange in told[-shown:]:
        yield from _tell_exchange(exchange)
    yield _clip(f"> {_words(last.command)}")
    yield f"differs in {difference.path} ({difference.what})"
    yield _clip(f"  {reference}: {_text(difference.theirs)}")
    yield _clip(f"  simulator: {_text(difference.ours)}")
    for name, answer in ((reference, last.theirs), ("simulator", last.ours)):
        yield f"  the answer of {name}:"
        for line in _tell_answer(answer):
            yield f"  {line}"


def _tell_exchange(exchange: Exchange) -> Iterator[str]:
    yield _clip(f"> {_words(exchange.command)}")
    yield from _tell_answer(exchange.theirs)


def _tell_answer(answer: Json) -> Iterator[str]:
    for reply in answer.get("replies", ()):
        shown = reply.get("data", reply.get("error"))
        yield _clip(f"    {reply.get('id')} at {reply['at']} {reply['api']}: {_text(shown)}")
    for record in answer.get("records", ()):
        where = f"{record['partition']}/{record['offset']}"
        rest = {key: record[key] for key in record if key not in {"partition", "offset"}}
        yield _clip(f"    record {where} {_text(rest)}")
    if "error" in answer:
        yield _clip(f"    error: {answer['error']}")


def _words(command: Json) -> str:
    if command["op"] == "call":
        return (
            f"{command.get('id')} {command['api']} v{command.get('v')} {_text(command.get('data'))}"
        )
    rest = {key: value for key, value in command.items() if key not in {"op", "id"}}
    return f"{command.get('id', '')} {command['op']} {_text(rest)}"


def _groups(command: Json) -> set[str]:
    """Return the groups that a command names."""
    data = command.get("data", command)
    found = {data[key] for key in ("groupId", "group") if isinstance(data.get(key), str)}
    for key in ("groups", "groupsNames"):
        for entry in data.get(key) or ():
            found.add(entry["groupId"] if isinstance(entry, dict) else entry)
    return found


def _replied_groups(last: Exchange, exchanges: Sequence[Exchange]) -> set[str]:
    """Return the groups of the requests that the last command answered."""
    by_id = {each.command.get("id"): each.command for each in exchanges}
    found: set[str] = set()
    for answer in (last.ours, last.theirs):
        for reply in answer.get("replies", ()):
            found |= _groups(by_id.get(reply.get("id"), {}))
        for record in answer.get("records", ()):
            group = record.get("key", {}).get("data", {}).get("group")
            found |= set() if group is None else {group}
    return found


def _concerns(command: Json, groups: set[str]) -> bool:
    """Whether a command involves those groups: names one of them, or none at all."""
    named = _groups(command)
    return not groups or not named or bool(named & groups)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _clip(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 4]} ..."
