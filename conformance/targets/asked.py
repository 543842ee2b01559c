"""What a script asks of a broker's settings, and whether a broker has it."""

from collections.abc import Collection, Iterator, Mapping
from math import ceil
from typing import Any, Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.targets.target import Call, Json

DELAY: Final = "group.initial.rebalance.delay.ms"
SHORTEST_SESSION: Final = "group.min.session.timeout.ms"
LONGEST_SESSION: Final = "group.max.session.timeout.ms"
LARGEST_REQUEST: Final = "socket.request.max.bytes"
VERIFIES: Final = "transaction.partition.verification.enable"
GROUP_SIZE: Final = "group.max.size"
RETENTION: Final = "offsets.retention.minutes"
RETENTION_CHECK: Final = "offsets.retention.check.interval.ms"
INTERVAL: Final = "group.consumer.assignment.interval.ms"
MIGRATION: Final = "group.consumer.migration.policy"
MEMBERS: Final = "group.consumer.max.size"
SHARE_INTERVAL: Final = "group.share.assignment.interval.ms"
STREAMS_DELAY: Final = "group.streams.initial.rebalance.delay.ms"
STREAMS_INTERVAL: Final = "group.streams.assignment.interval.ms"
SHARE_MEMBERS: Final = "group.share.max.size"

_TARGETS_EVERY: Final = {
    "ConsumerGroupHeartbeat": INTERVAL,
    "ShareGroupHeartbeat": SHARE_INTERVAL,
    "StreamsGroupHeartbeat": STREAMS_INTERVAL,
}
"""Heartbeat of each new protocol -> the shortest time between two target assignments."""

LIMITS: Final = frozenset({GROUP_SIZE, MEMBERS, SHARE_MEMBERS})
"""Settings that bound the members of a group."""
_ROOM: Final = 20
"""Members that a group has at most, in scripts that are not about a full one."""
_RIGHTS: Final = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "right DESCRIBE on the cluster",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "rights READ, DESCRIBE, DELETE on groups conformance-*",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "rights READ, DESCRIBE on topics conformance-*",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "right WRITE on every transactional id",
}

ADDS_PARTITION: Final = 5
"""The version of TxnOffsetCommit that adds the group's partition to its transaction itself."""

SHORTEST_WANTED_MS: Final = 100
"""The shortest session of any script."""
ASSIGNORS: Final = "group.consumer.assignors"
FAILING: Final = "failing"
"""Name of an assignor that fails, where a target has one."""

_NAMES: Final = {
    "delay": DELAY,
    "size": GROUP_SIZE,
    "session_min": SHORTEST_SESSION,
    "session_max": LONGEST_SESSION,
    "commit_timeout": "offsets.commit.timeout.ms",
    "retention": RETENTION,
    "check": RETENTION_CHECK,
    "metadata": "offset.metadata.max.bytes",
    "linger": "group.coordinator.append.linger.ms",
    "interval": INTERVAL,
    "members": MEMBERS,
    "sharing_members": SHARE_MEMBERS,
    "first_target_delay": STREAMS_DELAY,
    "assignors": ASSIGNORS,
    "migration": MIGRATION,
}
_NO_SETTINGS: Final = ("topics", "partitions", "started", "records")
"""Words of the command `broker` that are about something else."""


def settings_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that the words of a `broker` command ask for, by Kafka's names."""
    return {_NAMES[name]: value for name, value in options.items() if name not in _NO_SETTINGS}


def misfit(asked: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """Return the first setting that is asked for and not there; None when all are.

    Where time is real, nobody knows when the broker last looked for expired offsets: a shorter
    interval than asked for is as good. With a longer initial delay, a case is played more slowly.

    Args:
        asked: Settings that a script asks for.
        found: Those of a broker, as far as they are known.
    """
    for setting, wanted in asked.items():
        has = found.get(setting)
        is_shorter = setting == RETENTION_CHECK and has is not None and int(has) <= int(wanted)
        is_slower = setting == DELAY and has is not None and 0 < int(wanted) <= int(has)
        if has != wanted and not (is_shorter or is_slower):
            return setting
    return None


def unlock_of(data: Json, asked: Collection[str], found: Mapping[str, str]) -> str:
    """Return the setting or right for want of which a broker refused; empty if it did not.

    No script expects a refusal for want of a right, and only those that ask for a limit expect
    GROUP_MAX_SIZE_REACHED: of any other broker it is an error.

    Args:
        data: Answer.
        asked: Names of the settings that the script asks for.
        found: Settings of the broker.
    """
    errors = set(_errors_in(data))
    for error, right in _RIGHTS.items():
        if error in errors:
            return right
    if ErrorCode.GROUP_MAX_SIZE_REACHED in errors and LIMITS.isdisjoint(asked):
        for limit in sorted(LIMITS):
            if int(found.get(limit, _ROOM)) < _ROOM:
                return f"{limit}={_ROOM}"
    return ""


def _errors_in(value: Any) -> Iterator[int]:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        if "errorCode" in value:
            yield value["errorCode"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _errors_in(each)


_TIMER_LATE_MS: Final = 500
"""How late the first target assignment of a streams group may be, which a timer computes."""


class Pace:
    """How long a script waits before the next request that may need a new target assignment.

    Scripts expect a target assignment as soon as a heartbeat or a JoinGroup finds the old one out
    of date. A broker computes none within its assignment interval after the last one, and none for
    a fresh streams group within its initial rebalance delay. Where a case is not about that, it
    waits until the interval has passed. A member that leaves needs no target.

    Args:
        wanted: Settings that the script has in mind.
        found: Settings of the broker; those that it does not tell count as what is wanted.
    """

    def __init__(self, wanted: Mapping[str, str], found: Mapping[str, str]) -> None:
        def more_ms(name: str) -> int:
            return int(found.get(name, wanted.get(name, 0))) - int(wanted.get(name, 0))

        self._intervals_ms = {api: more_ms(name) for api, name in _TARGETS_EVERY.items()}
        self._first_target_ms = more_ms(STREAMS_DELAY)
        self._due_ms: dict[str, float] = {}
        """Group id -> when its next request may be sent."""

    def owed_ms(self, call: Call, now_ms: float) -> int:
        """Return how long to wait before a request, which counts as sent after that.

        Args:
            call: Request, with the script's names.
            now_ms: Instant on the script's clock, in milliseconds.
        """
        group, interval_ms = call.data.get("groupId", ""), self._intervals_ms.get(call.api)
        due_ms = self._due_ms.get(group)
        if interval_ms is None and (due_ms is None or call.api != "JoinGroup"):
            return 0
        is_leaving = call.data.get("memberEpoch", 0) < 0
        owed_ms = 0 if due_ms is None or is_leaving else max(0, ceil(due_ms - now_ms))
        if interval_ms is None:
            interval_ms = self._intervals_ms["ConsumerGroupHeartbeat"]
        elif due_ms is None and call.api == "StreamsGroupHeartbeat":
            interval_ms += self._first_target_ms and self._first_target_ms + _TIMER_LATE_MS
        self._due_ms[group] = now_ms + owed_ms + interval_ms
        return owed_ms
