"""Compares two answers and finds the first difference.

Everything is compared, in its order: the virtual time, every reply with its instant, every appended
record, every call of the share coordinator and every cut of its log. A broker has no order across
the partitions of `__consumer_offsets`, whose events several threads drain; but its timers have the
wheel's order, and so have the writes of a deletion, and both sides here do one thing at a time. So
nothing is sorted before it is compared. One order is the reference's own: a request's own answer
comes after those of others that the request completed, because the reference asks for it when the
coordinator has returned (as KafkaApis of 3.9 does; a 4.x broker has other threads in between).
`Harness.hears_own_last` does the same. And what consumer groups and share groups list in the order
of hash maps, which no client sees, is put in order; see `unordered`.

The text of an `error` is not compared, only its presence.
"""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from coordinator_sim_conformance.differ.unordered import ordered_records, ordered_reply

Json = dict[str, Any]

_ABSENT: Final = "(nothing)"


class Difference(Struct, frozen=True):
    """The first field that differs in two answers to one command.

    Args:
        path: Path of the field, such as `replies[0].data.errorCode`.
        ours: Value of the simulator.
        theirs: Value of the reference.
        what: Kind of answer: the API of a reply, `record`, or the op.
    """

    path: str
    ours: object
    theirs: object
    what: str

    @property
    def signature(self) -> str:
        """Kind and field without places, equal for differences of one cause."""
        fields = [part.split("[")[0] for part in self.path.split(".")]
        return f"{self.what}:{'.'.join(fields)}"


def first_difference(command: Json, ours: Json, theirs: Json) -> Difference | None:
    """Return the first field in which two answers differ, or None."""
    return next(differences(command, ours, theirs), None)


def differences(command: Json, ours: Json, theirs: Json) -> Iterator[Difference]:
    """Yield every field in which two answers differ."""
    if ours == theirs:
        return
    left, right = _comparable(ours), _comparable(theirs)
    for path, one, other in _walk("", left, right):
        yield Difference(path, one, other, _kind(command, path, left, right))


def _comparable(answer: Json) -> Json:
    """Return the parts to compare, in order."""
    return {
        "error": "(an error)" if "error" in answer else None,
        "now": answer.get("now"),
        "partition": answer.get("partition"),
        "replies": [ordered_reply(reply) for reply in answer.get("replies", [])],
        "records": ordered_records(answer.get("records", [])),
        "persister": answer.get("persister", []),
        "deleted": answer.get("deleted", []),
    }


def _walk(path: str, one: object, other: object) -> Iterator[tuple[str, object, object]]:
    """Yield the leaves that differ, in the order of the fields."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            below = f"{path}.{name}" if path else name
            yield from _walk(below, one.get(name, _ABSENT), other.get(name, _ABSENT))
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            pair = [each[index] if index < len(each) else _ABSENT for each in (one, other)]
            yield from _walk(f"{path}[{index}]", *pair)
    else:
        yield path, one, other


def _kind(command: Json, path: str, ours: Json, theirs: Json) -> str:
    """Return the kind of answer that a path is in."""
    if path.startswith("records"):
        return "record"
    if path.startswith("persister"):
        return "persister"
    if path.startswith("replies["):
        index = int(path[len("replies[") :].split("]", maxsplit=1)[0])
        for answer in (theirs, ours):
            if index < len(answer["replies"]):
                return str(answer["replies"][index].get("api"))
    return str(command.get("api", command["op"]))
