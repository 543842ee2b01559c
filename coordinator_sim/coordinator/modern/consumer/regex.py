"""Subscriptions by regular expression: RE2's syntax, resolved beside the heartbeat.

A member's expression is looked up in the topics by work of its own, after the heartbeat that asks
for it and in slices; what it finds is written, and the group's epoch with it.

Source: kafka 4.4, GroupMetadataManager.maybeUpdateRegularExpressions and
handleRegularExpressionsResult; modern/consumer/TopicRegexResolver.java, on RE2/J.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from functools import lru_cache
from typing import Final, Protocol

import re2

from coordinator_sim.coordinator.common.runtime import CoordinatorEvent
from coordinator_sim.coordinator.effects import Effect
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.coordinator.epoch_tracing import trace_scan
from coordinator_sim.coordinator.modern.consumer.group import (
    ConsumerGroup,
    ConsumerGroupMember,
    CopiedCounts,
    ResolvedRegex,
)
from coordinator_sim.coordinator.modern.group import CountedTopics
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.records import LogRecord

BATCH_MS: Final = 10_000
"""How long what was found is believed at least. Source: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS."""
_NEVER_MS: Final = -(1 << 63)

# DEVIATION: Kafka has no bound on an expression, and lets one thread match it for minutes. Here one
# that costs more than these is invalid, which its member is told by INVALID_REGULAR_EXPRESSION.
# Source: kafka 4.4, GroupMetadataManager.throwIfRegularExpressionIsInvalid, TopicRegexResolver.
MOST_INSTRUCTIONS: Final = 16_384
"""Instructions of a compiled expression, times one and its named groups: 30 ms a topic name, which
has 249 characters at most (measured; an alternation of 400 names has 11,000)."""
_MOST_UNICODE_CLASSES: Final = 128
r"""Occurrences of `\p` and `\P`: 0.1 ms each to compile (measured)."""
_COMPILER_BYTES: Final = 393_216
"""RE2's max_mem: what a compiler and later the cache of an automaton may take."""
_TOO_LARGE: Final = "pattern too large"
_A_NAME: Final = 8
"""Cost of matching a name, beside that of its characters."""
_INSTRUCTIONS_A_UNIT: Final = 64
"""How many instructions are run on a character in one unit of cost (measured: 7 ns each)."""

# What RE2/J says of a fault, by how RE2 begins to.
_FAULTS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "invalid character class range": "invalid character class range",
    "invalid escape sequence": "invalid escape sequence",
    "unexpected )": "regexp/syntax: internal error",
}


class Pattern(Protocol):
    """A compiled expression.

    Attributes:
        programsize: How many instructions it has.
        groups: How many named groups it has.
    """

    programsize: int
    groups: int

    def fullmatch(self, text: str) -> object | None:
        """Match a whole text; None if it does not match."""
        ...


@unique
class RegexChange(Enum):
    """What a heartbeat does to its member's expression."""

    NONE = "none"
    UNRESOLVED = "unresolved"
    RESOLVED = "resolved"


@lru_cache(maxsize=1_024)
def compiled(regex: str) -> Pattern | str:
    """An expression ready for use, or what is wrong with it in the words of RE2/J."""
    class_count = regex.count("\\p") + regex.count("\\P")
    if class_count > _MOST_UNICODE_CLASSES:
        return f"{class_count} Unicode classes are more than {_MOST_UNICODE_CLASSES}"
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _COMPILER_BYTES
    try:
        pattern: Pattern = re2.compile(regex, options=options)
    except re2.error as error:
        said = error.args[0]
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        if text.startswith(_TOO_LARGE):
            return f"it compiles to more than {MOST_INSTRUCTIONS} instructions"
        return next((ours for begin, ours in _FAULTS.items() if text.startswith(begin)), text)
    size = pattern.programsize * (1 + pattern.groups)
    if size > MOST_INSTRUCTIONS:
        return f"it compiles to {size} instructions, more than {MOST_INSTRUCTIONS}"
    return pattern


def change_regex(
    runtime: Runtime,
    partition: Partition,
    group: ConsumerGroup,
    members: tuple[ConsumerGroupMember, ConsumerGroupMember],
    records: list[LogRecord],
    context: RequestContext,
) -> RegexChange | Refusal:
    """See to a member's expression, and have expressions resolved where that is due.

    Args:
        runtime: Where the resolution is scheduled.
        partition: Of the group.
        group: As it is.
        members: The member as it was, and with what its heartbeat says of it.
        records: Gets a tombstone of an expression that nobody else subscribes by.
        context: Of the heartbeat; a resolution finds what its sender may describe.
    """
    before, updated = members
    old, new = before.subscribed_topic_regex or None, updated.subscribed_topic_regex or None
    change = RegexChange.NONE
    is_new = False
    if before.subscribed_topic_regex != updated.subscribed_topic_regex:
        change = RegexChange.UNRESOLVED
        if old is not None and group.regex_counts.get(old) == 1:
            records.append(group.regex_tombstone(old))
        if new is None:
            if old is not None and runtime.profile.consumer_cleared_regex_bumps:
                change = RegexChange.RESOLVED
        elif new not in group.regex_counts:
            fault = compiled(new)
            if isinstance(fault, str):
                return _invalid(new, fault)
            is_new = True
        elif new in group.resolved:
            change = RegexChange.RESOLVED
    if is_new or group.regex_counts.entries:
        regexes = _subscribed_regexes(group, old, new)
        if regexes and _is_due(runtime, partition, group, regexes, is_new=is_new):
            resolution = Resolution(partition, group.group_id, tuple(regexes), context)
            runtime.in_background[partition.index, group.group_id] = resolution.steps(runtime)
    return change


def _invalid(regex: str, fault: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {fault}.",
    )


def _subscribed_regexes(group: ConsumerGroup, old: str | None, new: str | None) -> list[str]:
    """The expressions that members will subscribe by, in the order of Kafka's map."""
    counts = CopiedCounts(group.regex_counts.items())
    counts.replace(old, new)
    return counts.copied().names()


def _is_due(
    runtime: Runtime,
    partition: Partition,
    group: ConsumerGroup,
    regexes: list[str],
    *,
    is_new: bool,
) -> bool:
    """Whether all expressions are to be resolved; at most once in `BATCH_MS`, and one at a time."""
    if (partition.index, group.group_id) in runtime.in_background:
        return False
    last = next((resolved for _, resolved in group.resolved.items()), None)
    last_ms = _NEVER_MS if last is None else last.timestamp_ms
    now_ms = runtime.wall_ms
    if now_ms <= last_ms + BATCH_MS:
        return False
    newest = max(partition.loaded_version, runtime.topics.newest_version)
    return (
        is_new
        or len(regexes) != len(group.resolved)
        or (0 if last is None else last.version) < newest
        or now_ms > last_ms + runtime.config.group_consumer_regex_refresh_interval_ms
    )


@dataclass(slots=True, frozen=True)
class Resolution:
    """Looks expressions up in the topics, and writes what it finds.

    What the sender of the heartbeat that asked for it may not describe is left out, also of the
    expressions of other members.

    Source: kafka 4.4, TopicRegexResolver.filterTopicDescribeAuthorizedTopics.
    """

    partition: Partition
    group_id: str
    regexes: tuple[str, ...]
    context: RequestContext

    def steps(self, runtime: Runtime) -> Steps[CoordinatorEvent]:
        """Match the topics that there are at the first step; return the event that writes them.

        Source: kafka 4.4, TopicRegexResolver.resolveRegularExpressions.
        """
        regexes = java_hash_order(self.regexes, _capacity(len(self.regexes)))
        if runtime.tracing:
            trace_scan(runtime, self.group_id, regexes)
        version, now_ms = runtime.topics.version, runtime.wall_ms
        names = tuple(runtime.topics.by_name)
        found = {}
        for regex in regexes:
            topics = yield from self._matched(runtime, regex, names)
            found[regex] = ResolvedRegex(topics, version, now_ms)
        return _Resolved(self.partition, self.group_id, found)

    def _matched(self, runtime: Runtime, regex: str, names: Iterable[str]) -> Steps[frozenset[str]]:
        pattern = compiled(regex)
        found = []
        if not isinstance(pattern, str):
            may_describe = runtime.topic_rights
            for name in names:
                yield _A_NAME + pattern.programsize * len(name) // _INSTRUCTIONS_A_UNIT
                is_found = pattern.fullmatch(name) is not None
                if is_found and (may_describe is None or may_describe(self.context, name)):
                    found.append(name)
        return frozenset(found)


@dataclass(slots=True, frozen=True)
class _Resolved:
    """What the expressions of a group match."""

    partition: Partition
    group_id: str
    found: Mapping[str, ResolvedRegex]

    def run(self, runtime: Runtime) -> None:
        """Write it, unless the partition is not led any more."""
        if self.partition.state is not PartitionState.ACTIVE:
            return
        group = self.partition.consumer_group(self.group_id)
        records = () if group is None else self._records(runtime, group)
        if records or not self.partition.is_settled:
            runtime.submit(self.partition, None, Effect(records=records))

    def _records(self, runtime: Runtime, group: ConsumerGroup) -> tuple[LogRecord, ...]:
        """What was found, and another epoch if that changes anything."""
        records: list[LogRecord] = []
        topics = CountedTopics(group.topic_counts.entries)
        bumps = False
        for regex, resolved in self.found.items():
            if regex not in group.regex_counts:
                continue
            known = group.regex_topics(regex)
            if known != resolved.topics:
                bumps = True
                topics.step(known, -1, by_name=False)
                topics.step(resolved.topics, 1, by_name=False)
            records.append(group.regex_record(regex, resolved))
        seen = group.topics_seen(runtime.topics, topics.counts)
        records += seen.records
        if bumps or seen.has_changed:
            epoch = group.epochs.group_epoch + 1
            records.append(group.group_record(epoch, seen.metadata_hash))
            group.set_metadata_refresh(runtime.topics, epoch, runtime.wall_ms)
        return tuple(records)


def _capacity(size: int) -> int:
    """The buckets of a HashMap made for `size` keys that has taken them."""
    capacity = 1 << max(size - 1, 0).bit_length()
    while size * 4 > capacity * 3:
        capacity *= 2
    return capacity
