"""Whether two answers say the same, and if not, where they begin to differ.

Compared is everything, in its order: the virtual time, every reply with its instant, every appended
record. A broker has no order across the partitions of `__consumer_offsets`, whose events several
threads drain; but its timers have one, which is the wheel's, and so is that of a deletion's writes,
and both sides here do one thing at a time. So nothing is sorted before it is compared. One place in
the order is the reference's own: it hears of a request's own answer after those of others that the
request completed, because it asks for it when the coordinator has returned (as KafkaApis of 3.9
does; a 4.x broker has other threads in between). `Harness.hears_own_last` does the same.

Only the text of an `error` is each side's own: compared is that there is one.
"""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

Json = dict[str, Any]

_ABSENT: Final = "(nothing)"


class Difference(Struct, frozen=True):
    """The first field that differs in two answers to one command.

    Args:
        path: Where it is, as `replies[0].data.errorCode`.
        ours: What the simulator says there.
        theirs: What the reference says.
        what: The kind of answer it is in: the API of a reply, `record`, or the op.
    """

    path: str
    ours: object
    theirs: object
    what: str

    @property
    def signature(self) -> str:
        """Kind and field without places: what two differences of one cause have in common."""
        fields = [part.split("[")[0] for part in self.path.split(".")]
        return f"{self.what}:{'.'.join(fields)}"


def first_difference(command: Json, ours: Json, theirs: Json) -> Difference | None:
    """The first field in which two answers differ, or None when they say the same."""
    if ours == theirs:
        return None
    left, right = _comparable(ours), _comparable(theirs)
    for path, one, other in _walk("", left, right):
        return Difference(path, one, other, _kind(command, path, left, right))
    return None


def _comparable(answer: Json) -> Json:
    """The parts to compare, in the order in which they are looked at."""
    return {
        "error": "(an error)" if "error" in answer else None,
        "now": answer.get("now"),
        "partition": answer.get("partition"),
        "replies": answer.get("replies", []),
        "records": answer.get("records", []),
    }


def _walk(path: str, one: object, other: object) -> Iterator[tuple[str, object, object]]:
    """The leaves that differ, in the order of the fields."""
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
    """What kind of answer a path is in."""
    if path.startswith("records"):
        return "record"
    if path.startswith("replies["):
        index = int(path[len("replies[") :].split("]", maxsplit=1)[0])
        for answer in (theirs, ours):
            if index < len(answer["replies"]):
                return str(answer["replies"][index].get("api"))
    return str(command.get("api", command["op"]))
