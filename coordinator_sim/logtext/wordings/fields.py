"""Kinds of values in log lines: where each goes in a trace event, and both its directions.

A row's text names a kind as `{group_id}`. Kinds are named like the column of the trace, or the
entry of `attrs`, that holds the value. `values` has the functions that parse and print.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.logtext.wordings import values
from coordinator_sim.logtext.wordings.releases import Release
from coordinator_sim.messages.embedded.contents import SERVER_PREFIX
from coordinator_sim.trace.events import TraceEvent

Printer = Callable[[TraceEvent, Release], str]
_LAZY: Final = r".*?"
_REST: Final = r".*"
_NUMBER: Final = r"\d+"


class Field(Struct, frozen=True, kw_only=True):
    """One kind of value.

    Args:
        pattern: What a value looks like; it may name the group of the kind that holds the value.
        column: Column of the trace that holds the value; empty when none does.
        attr: Entry of `attrs` that holds it; empty when none does.
        parse: Value as the column or the entry holds it, of the text in a line; None when it is
            the plain text.
        show: Text in a line, of an event; None when it is the plain value.
        default: Text for an event without the entry, or the fixed words of a kind without a value.
        is_read: Whether the reader takes the value itself, into no column and no entry.
        is_free_text: Whether a part of it is useful, where the line was cut.
        is_list: Whether it grows with a group's members or partitions.
    """

    pattern: str = _LAZY
    column: str = ""
    attr: str = ""
    parse: Callable[[str], object] | None = None
    show: Printer | None = None
    default: str = "None"
    is_read: bool = False
    is_free_text: bool = False
    is_list: bool = False

    @property
    def has_value(self) -> bool:
        """Whether the reader is given anything."""
        return bool(self.column or self.attr or self.is_read or "(?P<" in self.pattern)

    @property
    def takes_rest(self) -> bool:
        """Whether the value is all that follows, whatever the row has behind it."""
        return self.pattern.endswith((".*", ".*)"))

    @property
    def is_lazy(self) -> bool:
        """Whether the pattern is as short as what follows allows."""
        return self.pattern.endswith(("*?", "+?", "*?)"))

    def group(self, name: str) -> str:
        """Return the pattern with a group of its kind's name, where it has a value."""
        is_named = self.has_value and "(?P<" not in self.pattern
        return f"(?P<{name}>{self.pattern})" if is_named else f"(?:{self.pattern})"

    def text(self, event: TraceEvent, release: Release) -> str:
        """Return the value of an event as a line has it."""
        if self.show is not None:
            return self.show(event, release)
        if self.column:
            return str(getattr(event, self.column))
        return event.attrs.get(self.attr, self.default)


def _number(column: str) -> Field:
    return Field(column=column, pattern=_NUMBER, parse=values.whole_number)


def _instance(show: Printer) -> Field:
    return Field(pattern=r"(?P<group_instance_id>.*?)", show=show)


def _state(event: TraceEvent, release: Release) -> str:
    return release.shown(event.attrs.get("in_state", ""))


def _log(event: TraceEvent, _: Release) -> str:
    return f"{OFFSETS_TOPIC}-{event.offsets_partition}"


def _with_hash(event: TraceEvent, _: Release) -> str:
    """The hash of the topics, which releases since 4.1 print."""
    found = event.attrs.get("metadata_hash")
    return "" if found is None else f" with metadata hash {found}"


_STATE: Final = r"in (?:state )?(?P<in_state>\w+)(?: state)?"

_OF_GROUPS: Final = {
    "group_id": Field(column="group_id"),
    # A group before words that may also be in its name.
    "group_to_last": Field(pattern=r"(?P<group_id>.+)", column="group_id"),
    "group_word": Field(pattern=r"(?P<group_id>\S+)"),
    "last_group_word": Field(pattern=r"(?P<group_id>\S+)$"),
    "generation": _number("generation"),
    "members": _number("members"),
    "static_members": _number("static_members"),
    "in_state": Field(attr="in_state", pattern=r"\w+", show=_state),
    "in_x_state": Field(pattern=_STATE, show=lambda *at: f"in {_state(*at)} state"),
    "in_state_x": Field(pattern=_STATE, show=lambda *at: f"in state {_state(*at)}"),
    "preparing": Field(pattern=r"(?P<in_state>\w+)", default="PreparingRebalance"),
    "reason": Field(pattern=_REST, column="reason_text", is_read=True, is_free_text=True),
    "group_type": Field(attr="group_type", pattern=r"\w+", default="classic"),
    "from_type": Field(attr="from_type", pattern=r"\w+"),
    "to_type": Field(attr="to_type", pattern=r"\w+"),
    "epoch_generation": Field(column="generation", pattern=_NUMBER, parse=values.whole_number),
    "with_hash": Field(
        pattern=r"(?: with metadata hash (?P<metadata_hash>-?\d+))?", show=_with_hash
    ),
    "metadata_hash": Field(attr="metadata_hash", pattern=r"-?\d+"),
    "assignor": Field(
        column="protocol_name",
        pattern=r"[^']*",
        parse=lambda text: SERVER_PREFIX + text,
        show=lambda event, _: (event.protocol_name or "").removeprefix(SERVER_PREFIX),
    ),
    "assignment_ms": Field(
        column="latency_us",
        pattern=_NUMBER,
        parse=values.milliseconds,
        show=lambda event, _: str((event.latency_us or 0) // 1_000),
    ),
    "used_protocol": Field(attr="protocol", pattern="classic|consumer", default="consumer"),
    "empty": Field(attr="empty", parse=str.strip),
    "empty_group": Field(
        pattern="(?P<empty>empty )?",
        show=lambda event, _: "empty " if "empty" in event.attrs else "",
    ),
    "scanned": Field(attr="topics", pattern=_NUMBER),
    "regexes": Field(attr="regexes", pattern=r"\[.*\]", is_free_text=True),
    "groups": Field(attr="groups", default="", is_read=True, is_list=True),
    "stored_generation": Field(
        attr="stored_generation", pattern=_NUMBER, show=lambda event, _: str(event.generation)
    ),
}
_OF_MEMBERS: Final = {
    "member_id": Field(column="member_id"),
    "member_to_last": Field(pattern=r"(?P<member_id>.+)", column="member_id"),
    "leader_id": Field(column="leader_id"),
    "client_id": Field(column="client_id"),
    "client_host": Field(column="client_host"),
    "session_timeout_ms": _number("session_timeout_ms"),
    "rebalance_timeout_ms": _number("rebalance_timeout_ms"),
    "group_instance_id": Field(column="group_instance_id", parse=values.instance_id),
    "option": _instance(lambda event, release: values.option(event.group_instance_id, release)),
    "early_option": _instance(
        lambda event, release: values.early_option(event.group_instance_id, release)
    ),
    "old_instance": _instance(
        lambda event, release: values.option(event.attrs.get("old_instance_id"), release)
    ),
    "old_leader_id": Field(attr="old_leader_id"),
    "old_member_id": Field(attr="old_member_id"),
    "current_member_id": Field(attr="current_member_id"),
    "metadata": Field(
        pattern=r"MemberMetadata\(memberId=(?P<member_id>.*?)(?:, "
        r"groupInstanceId=(?P<group_instance_id>.*?), clientId=(?P<client_id>.*?), "
        r"clientHost=(?P<client_host>.*?), sessionTimeoutMs=(?P<session_timeout_ms>\d+), "
        r"rebalanceTimeoutMs=(?P<rebalance_timeout_ms>\d+), supportedProtocols=.*?)?\)+",
        show=values.member_in_full,
    ),
    "new_leader": Field(
        pattern=r"(?:\w+\(memberId='?)?(?P<leader_id>.*?)(?:'?, groupInstanceId=.*)?",
        show=values.member_in_full,
    ),
    "kicked": Field(
        pattern=_REST,
        attr="kicked",
        show=lambda event, release: values.name_keys(event.attrs["kicked"].split(", "), release),
        is_read=True,
        is_free_text=True,
        is_list=True,
    ),
    "member_ids": Field(
        attr="member_ids",
        pattern=r".+",
        parse=lambda text: ", ".join(values.listed(text)),
        show=values.unassigned,
        is_list=True,
    ),
    "removed": Field(
        attr="removed",
        show=lambda event, release: values.name_set(values.listed(event.attrs["removed"]), release),
    ),
    "leavers": Field(
        attr="leavers",
        pattern=r".+",
        show=lambda event, _: event.attrs.get("leavers", event.member_id or ""),
    ),
    "client_reason": Field(
        pattern=_REST, column="client_reason", show=values.leave_reason, is_free_text=True
    ),
    "join_reason": Field(pattern=r"(?P<client_reason>.*)", show=values.join_reason),
    "operation": Field(
        attr="operation",
        pattern=r"[\w-]+",
        show=lambda event, _: values.OPERATIONS[event.event],
    ),
    "cause": Field(attr="cause"),
    "temporary": Field(attr="temporary", pattern="temporarily", default="temporarily"),
    "unreached_epoch": Field(attr="member_epoch", pattern=r"-?\d+"),
}
_OF_PARTITIONS: Final = {
    "broker_id": _number("broker_id"),
    "offsets_partition": _number("offsets_partition"),
    "offsets_log": Field(pattern=r"__consumer_offsets-(?P<offsets_partition>\d+)", show=_log),
    "any_log": Field(
        pattern=r"(?:\[?__consumer_offsets[-,](?P<offsets_partition>\d+)\]?|\S+)", show=_log
    ),
    "epoch": Field(attr="epoch", pattern=_NUMBER),
    "optional_epoch": Field(pattern=r"(?P<epoch>[^.]*)", show=values.optional_epoch),
    "resigned_epoch": Field(pattern=r"(?P<epoch>.+?)", show=values.optional_epoch),
    "current_epoch": Field(attr="current_epoch"),
    "ms": Field(
        column="latency_us",
        pattern=_NUMBER,
        parse=values.milliseconds,
        show=lambda event, _: str((event.latency_us or 0) // 1_000),
    ),
    "scheduler_ms": Field(attr="scheduler_ms", pattern=_NUMBER, default="0"),
    "records": Field(attr="records", pattern=_NUMBER, default="0"),
    # DEVIATION: the size in bytes is 0, for the core knows records and not their bytes.
    "bytes": Field(attr="bytes", pattern=_NUMBER, default="0"),
    "offsets": Field(attr="offsets", pattern=_NUMBER, default="0"),
    "group_count": Field(attr="groups", pattern=_NUMBER, default="0"),
    "partitions": Field(
        attr="partitions", is_free_text=True, is_list=True, parse=values.partition_names
    ),
    "count": Field(attr="count", pattern=_NUMBER),
    "deleted": Field(attr="deleted"),
    "error": Field(attr="error", is_free_text=True),
    "load_error": Field(pattern=r"(?P<error>.*?)", show=values.answered_error),
    "store_error": Field(pattern=r"(?P<error>.*?)", show=values.store_error),
    "exception": Field(pattern=r"(?P<error>.*?)", show=values.exception_of),
    "static_error": Field(attr="static_error"),
    "what": Field(
        attr="what", pattern="Starting up|Startup complete|Shutting down|Shutdown complete"
    ),
}
_OF_CLIENTS: Final = {
    "member_generation": Field(
        pattern=r"Generation\{generationId=(?P<generation>-?\d+), memberId='(?P<member_id>.*?)', "
        r"protocol='(?P<protocol_name>.*?)'\}?"
    ),
    "protocol_name": Field(column="protocol_name"),
    "version": Field(pattern=_NUMBER, is_read=True),
    "error_text": Field(pattern=_REST, attr="error_text"),
    "error_words": Field(pattern=r"(?P<error_text>.*?)"),
    "inner_reason": Field(pattern=r"(?P<client_reason>.*?)"),
    "poll_expired": Field(pattern=r"(?P<client_reason>poll expired)"),
    "heard_reason": Field(pattern=r"(?P<client_reason>group is already rebalancing)"),
    # What librdkafka prints of a response that has none.
    "any_generation": Field(pattern=r"(?:-1|(?P<generation>\d+))"),
    "any_protocol": Field(pattern=r"(?P<protocol_name>[^,)]+)?"),
    "any_leader": Field(pattern=r"(?P<leader_id>[^,]+?)?"),
    "any_member": Field(pattern=r"(?P<member_id>[^,]+)?"),
    "quoted_member": Field(pattern=r"(?P<member_id>[^\"]+)?"),
    "partition": Field(pattern=r"(?P<partition>\S+ \[\d{1,9}\])", is_read=True),
    "partition_count": Field(attr="partition_count", pattern=_NUMBER),
    "map": Field(pattern=r"\{(?P<map>.*)", is_read=True, is_list=True),
    "assignment_text": Field(
        pattern=r"Assignment\{(?P<assignment_text>.*)", is_read=True, is_list=True
    ),
    "named": Field(attr="named", pattern=_REST),
    "connector": Field(pattern=r"(?P<named>\S+)"),
    "tasks": Field(pattern=r"(?P<named>\[.*?\])"),
    "first_topics": Field(pattern=r"(?P<named>\d+ topics) \(join-state init\)"),
    "lost_because": Field(
        pattern=r" due to cause: (?:null|(?P<named>.*?))"
        r"(?:\.? ?isDisconnected: .*|\. Rediscovery .*)?$"
    ),
    "restored_ms": Field(attr="restored_ms", pattern=_NUMBER),
    "unreachable_ms": Field(attr="unreachable_ms", pattern=_NUMBER),
    "assignment": Field(attr="assignment", pattern=_REST),
}
_OF_REASONS: Final = {
    "code": Field(attr="code", pattern=r"\S+"),
    "size": Field(attr="size", pattern=_NUMBER),
    "limit": Field(attr="limit", pattern=_NUMBER),
}
_WORDS: Final = {
    "any": Field(),
    "broker": Field(pattern=r"[^\]]*"),
    "write_what": Field(
        pattern=r"write (?:records|the transaction marker|a batch of \d+ record\(s\))|"
        r"flush the pending records"
    ),
    "rest": Field(pattern=r"(?: .*)?$", default=""),
    "end": Field(pattern=r"\.?$", default=""),
    "failed_with": Field(pattern=r"(?::| with) ", default=": "),
    ".": Field(pattern=r"\.?", show=lambda _, release: "." if release.is_in("java") else ""),
    "Member": Field(pattern=r"(?:(?:Dynamic|Static|Streams) )?[Mm]ember", default="Member"),
    "LeaveGroup": Field(pattern="`?LeaveGroup`?", default="`LeaveGroup`"),
}
FIELDS: Final = _OF_GROUPS | _OF_MEMBERS | _OF_PARTITIONS | _OF_CLIENTS | _OF_REASONS | _WORDS
"""Kinds by the name that the texts of rows have for them."""
EVENT_LISTS: Final = {"kicked": "member_id", "groups": "group_id"}
"""Kinds whose names are one event each, and the column of a name."""
