"""What a script asks of a broker's settings, and whether a broker has it."""

from collections.abc import Mapping
from typing import Final

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

ADDS_PARTITION: Final = 5
"""The version of TxnOffsetCommit that adds the group's partition to its transaction itself."""

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
    interval than asked for is as good.

    Args:
        asked: Settings that a script asks for.
        found: Those of a broker, as far as they are known.
    """
    for setting, wanted in asked.items():
        has = found.get(setting)
        is_shorter = setting == RETENTION_CHECK and has is not None and int(has) <= int(wanted)
        if has != wanted and not is_shorter:
            return setting
    return None
