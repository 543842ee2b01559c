"""Answers of streams groups (KIP-1071) as the words that a script compares.

Tasks are written `0:0-2+5,1:3`: by subtopology, ascending; `none` for none, `-` for null. Epochs
are written from `E`, the epoch of a new group's first assignment.
"""

from collections.abc import Callable, Iterable
from typing import Final

from coordinator_sim_conformance.script.answers import Json, Naming, Words, error_name
from coordinator_sim_conformance.script.consumer_answers import epoch_word
from coordinator_sim_conformance.script.consumer_blobs import spans

FIRST_EPOCH: Final = 2
"""The epoch of a new group's first assignment, which scripts write `E`."""
_STATUSES: Final = (
    "stale-topology",
    "missing-source-topics",
    "incorrectly-partitioned-topics",
    "missing-internal-topics",
    "shutdown-application",
    "assignment-delayed",
)
"""Source: kafka 4.4, StreamsGroupHeartbeatResponse.Status."""


def _tasks(told: Iterable[Json] | None) -> str:
    if told is None:
        return "-"
    entries = {each["subtopologyId"]: each["partitions"] for each in told if each["partitions"]}
    return ",".join(f"{name}:{spans(entries[name])}" for name in sorted(entries)) or "none"


def _heartbeat(data: Json, named: Naming, _first: int) -> Words:
    statuses = sorted(_STATUSES[each["statusCode"]] for each in data["status"] or ())
    return {
        "says": (data["errorMessage"] or "-").replace(" ", "_"),
        "id": named(data["memberId"]),
        "epoch": epoch_word(data["memberEpoch"], FIRST_EPOCH),
        "number": str(data["memberEpoch"]),
        "every": str(data["heartbeatIntervalMs"]),
        "status": ",".join(statuses) or "none",
        "active": _tasks(data["activeTasks"]),
        "standby": _tasks(data["standbyTasks"]),
        "warmup": _tasks(data["warmupTasks"]),
    }


def _describe(data: Json, named: Naming, _first: int) -> Words:
    (group, *_) = data["groups"]
    words: Words = {
        "error": error_name(group["errorCode"]),
        "state": group["groupState"] or "-",
        "epoch": epoch_word(group["groupEpoch"], FIRST_EPOCH),
        "number": str(group["groupEpoch"]),
        "target": epoch_word(group["assignmentEpoch"], FIRST_EPOCH),
        "members": ",".join(sorted(named(each["memberId"]) for each in group["members"])) or "-",
    }
    for member in group["members"]:
        name = named(member["memberId"])
        words |= {
            name: epoch_word(member["memberEpoch"], FIRST_EPOCH),
            f"{name}.active": _tasks(member["assignment"]["activeTasks"]),
            f"{name}.count": str(
                sum(len(each["partitions"]) for each in member["assignment"]["activeTasks"])
            ),
            f"{name}.standby": _tasks(member["assignment"]["standbyTasks"]),
            f"{name}.shall": _tasks(member["targetAssignment"]["activeTasks"]),
            f"{name}.process": member["processId"],
        }
    return words


STREAMS_ANSWERS: Final[dict[str, Callable[[Json, Naming, int], Words]]] = {
    "StreamsGroupHeartbeat": _heartbeat,
    "StreamsGroupDescribe": _describe,
}
"""The words of each reply of streams groups."""
