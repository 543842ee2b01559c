"""Fault rules: which requests a served cluster mistreats on purpose, and how.

A rule selects requests by fields of the protocol and does one thing to them, before or after the
cluster takes them. `Faults` is asked about every request; the first rule that matches acts. The
connection carries out what an action does to bytes and slots.
"""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from enum import Enum, unique
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.broker.contract import Call
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.roles import ROLES
from coordinator_sim.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from coordinator_sim.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest
from coordinator_sim.messages.describe_groups import DescribeGroupsRequest
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_delete import OffsetDeleteRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

Chance = Callable[[], float]
"""Draws a number from 0 (included) to 1 (excluded)."""

RoleOf = Callable[[str, str], str | None]
"""The role of a member, by group id and member id or instance id; None for no member."""

LONGEST_DELAY_MS: Final = 86_400_000
"""One day; no client waits that long."""
_MAX_COUNT: Final = (1 << 31) - 1
_SHOWN: Final = 60
"""Longest part, in characters, of a wrong name that a message quotes."""
_MAX_VERSION: Final = (1 << 15) - 1
_GROUP_KEYS: Final = 0
_OF_ONE_MEMBER: Final = (
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
_OF_ONE_GROUP: Final = (
    *_OF_ONE_MEMBER,
    AddOffsetsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    LeaveGroupRequest,
    OffsetDeleteRequest,
)


@unique
class Phase(Enum):
    """When a rule acts: before the cluster takes the request, or on the finished answer."""

    BEFORE = "before"
    AFTER = "after"


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which requests a rule is about; a field that is left out matches all.

    Texts may have the wildcards `*`, `?` and `[...]`, like file names in a shell.

    Args:
        api: Kafka's name in any spelling: `JoinGroup`, `JOIN_GROUP`, `join-group`.
        min_version: The lowest request version, included.
        max_version: The highest request version, included; not below the lowest.
        member: A member id or a `group.instance.id`.
        role: `leader` or `follower`: what the member is in its group when the rule is asked.
        broker: Id of the broker that the request reached.
        connection: Number of the connection, as `GET /v1/connections` shows it.
        nth: Act on only this one of the requests that the other fields match, counted from 1.
        probability: Probability of acting on a matching request, above 0 and up to 1.
    """

    api: str | None = None
    min_version: int | None = None
    max_version: int | None = None
    client_id: str | None = None
    group: str | None = None
    member: str | None = None
    role: str | None = None
    broker: int | None = None
    connection: int | None = None
    nth: int | None = None
    probability: float = 1.0


class _Action(Struct, frozen=True, omit_defaults=True, tag_field="do", forbid_unknown_fields=True):
    """What a rule does; `do` names it."""


class Drop(_Action, frozen=True, tag="drop"):
    """Never answer. Later requests of the connection stay unanswered too, as answers keep order."""


class Delay(_Action, frozen=True, tag="delay"):
    """Take the request, or send the answer, `ms` of wall time later, up to a day."""

    ms: int


class Fail(_Action, frozen=True, tag="error"):
    """Answer with an error, by Kafka's name. In phase AFTER the request has had its effect."""

    error: str


class Close(_Action, frozen=True, tag="close"):
    """Close the connection without an answer."""


class Duplicate(_Action, frozen=True, tag="duplicate"):
    """Send the answer twice, as a broken proxy may: the second copy answers nothing any more."""


class Reorder(_Action, frozen=True, tag="reorder"):
    """Send the answer behind the next one of its connection, which no broker does.

    Args:
        ms: Wall time after which the answer goes alone if no other came, up to a day.
    """

    ms: int = 1_000


class FailAppend(_Action, frozen=True, tag="fail-append"):
    """Fail the request's appends to logs with an error, by Kafka's name."""

    error: str = "NOT_ENOUGH_REPLICAS"


class SlowAppend(_Action, frozen=True, tag="slow-append"):
    """Let the request's appends to logs complete `ms` of wall time late, up to a day.

    The high watermark is held meanwhile, so that acks=-1, commits and readers wait. Appends that a
    coordinator makes later, such as a batch that lingers, are on time.
    """

    ms: int


class MoveCoordinator(_Action, frozen=True, tag="move-coordinator"):
    """Let the request append, then move the group's coordinator before the request is answered.

    Args:
        to: Id of the new coordinator's broker; None for the next living one.
    """

    to: int | None = None


Action = (
    Drop | Delay | Fail | Close | Duplicate | Reorder | FailAppend | SlowAppend | MoveCoordinator
)


class Fault(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule.

    Args:
        times: How often the rule acts at most; None for no limit.
    """

    action: Action
    match: Match = Match()
    phase: Phase = Phase.BEFORE
    times: int | None = None


class FaultState(Struct, frozen=True, kw_only=True):
    """A rule with its counts.

    Args:
        fault_id: Id of the rule; never used again.
        fitting: How many requests matched, whether or not the rule acted.
        hits: How often the rule acted.
    """

    fault_id: int
    fault: Fault
    fitting: int
    hits: int


class _Rule:
    def __init__(self, fault_id: int, fault: Fault) -> None:
        self.fault_id = fault_id
        self.fault = fault
        self.api = None if fault.match.api is None else api_named(fault.match.api)
        self.fitting = 0
        self.hits = 0

    def acts_on(self, call: Call[Any], chance: Chance, role_of: RoleOf) -> bool:
        fault = self.fault
        if fault.times is not None and self.hits >= fault.times:
            return False
        if not (self._fits(call) and self._fits_role(call, role_of)):
            return False
        self.fitting += 1
        if fault.match.nth is not None and self.fitting != fault.match.nth:
            return False
        if fault.match.probability < 1 and chance() >= fault.match.probability:
            return False
        self.hits += 1
        return True

    def _fits(self, call: Call[Any]) -> bool:
        match, version = self.fault.match, call.context.api_version
        return (
            (self.api is None or self.api is call.api)
            and (match.min_version is None or version >= match.min_version)
            and (match.max_version is None or version <= match.max_version)
            and (match.broker is None or match.broker == call.broker_id)
            and (match.connection is None or match.connection == call.connection)
            and _like(match.client_id, (call.context.client_id,))
            and _like(match.group, groups_of(call.request))
            and _like(match.member, members_of(call.request))
        )

    def _fits_role(self, call: Call[Any], role_of: RoleOf) -> bool:
        match = self.fault.match
        return match.role is None or any(
            _like(match.group, (group_id,))
            and _like(match.member, (name,))
            and role_of(group_id, name) == match.role
            for group_id, name in memberships_of(call.request)
        )


class Faults:
    """The rules of a cluster.

    Args:
        chance: Draws for rules with a probability.

    Attributes:
        rules: In order; empty as a rule.
    """

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self.rules: list[_Rule] = []
        self._last_id = 0
        self.heard: Callable[[int, Call[Any], Action], None] | None = None
        """Called on every hit, with the rule's id; None for no listener."""
        self.check: Callable[[Fault], None] = lambda _fault: None
        """Raises ConfigError for a rule that the cluster cannot use."""
        self.role_of: RoleOf = lambda _group_id, _name: None

    def add(self, fault: Fault) -> FaultState:
        """Add a rule behind the existing ones.

        Raises:
            ConfigError: the rule could never act.
        """
        check_fault(fault)
        self.check(fault)
        self._last_id += 1
        rule = _Rule(self._last_id, fault)
        self.rules.append(rule)
        return _state(rule)

    def remove(self, fault_id: int) -> bool:
        """Remove a rule; return whether it existed."""
        count = len(self.rules)
        self.rules = [rule for rule in self.rules if rule.fault_id != fault_id]
        return len(self.rules) < count

    def clear(self) -> None:
        """Remove all rules."""
        self.rules = []

    def states(self) -> tuple[FaultState, ...]:
        """Every rule, in order."""
        return tuple(_state(rule) for rule in self.rules)

    def before(self, call: Call[Any]) -> Action | None:
        """The action on a request that the cluster has not taken yet; None for no action."""
        return self._ask(Phase.BEFORE, call)

    def after(self, call: Call[Any]) -> Action | None:
        """The action on the answer of a request; None for no action."""
        return self._ask(Phase.AFTER, call)

    def _ask(self, phase: Phase, call: Call[Any]) -> Action | None:
        for rule in self.rules:
            if rule.fault.phase is phase and rule.acts_on(call, self._chance, self.role_of):
                if self.heard is not None:
                    self.heard(rule.fault_id, call, rule.fault.action)
                return rule.fault.action
        return None


def check_fault(fault: Fault) -> None:
    """Refuse a rule that could not act on any cluster.

    Raises:
        ConfigError: a value is wrong; the message names it.
    """
    match = fault.match
    if match.api is not None:
        api_named(match.api)
    if not 0 < match.probability <= 1:
        raise ConfigError(f"probability {match.probability}: wants above 0 and up to 1")
    _within("nth", match.nth, 1, _MAX_COUNT)
    _within("times", fault.times, 1, _MAX_COUNT)
    _within("connection", match.connection, 1, _MAX_COUNT)
    _within("broker", match.broker, 0, _MAX_COUNT)
    _check_versions(match)
    _check_member(match.member)
    if match.role is not None and match.role not in ROLES:
        raise ConfigError(f"role {match.role!r}: wants {' or '.join(ROLES)}")
    _check_action(fault.action, fault.phase)


def _check_action(action: Action, phase: Phase) -> None:
    if isinstance(action, Delay):
        _within("delay ms", action.ms, 0, LONGEST_DELAY_MS)
    if isinstance(action, Reorder):
        _within("reorder ms", action.ms, 1, LONGEST_DELAY_MS)
    if isinstance(action, Duplicate | Reorder) and phase is Phase.BEFORE:
        raise ConfigError("duplicate and reorder are done to answers: give phase after (--after)")
    if isinstance(action, SlowAppend):
        _within("slow-append ms", action.ms, 1, LONGEST_DELAY_MS)
    if isinstance(action, MoveCoordinator):
        _within("to", action.to, 0, _MAX_COUNT)
    if isinstance(action, Fail | FailAppend):
        error_named(action.error)
    if isinstance(action, FailAppend | SlowAppend | MoveCoordinator) and phase is Phase.AFTER:
        raise ConfigError("an append happens while the request is taken: leave out `phase`")


def _check_versions(match: Match) -> None:
    lowest, highest = match.min_version, match.max_version
    _within("min_version", lowest, 0, _MAX_VERSION)
    _within("max_version", highest, 0, _MAX_VERSION)
    if lowest is not None and highest is not None and lowest > highest:
        raise ConfigError(f"min_version {lowest} is above max_version {highest}: no version fits")


def _check_member(member: str | None) -> None:
    if member == "":
        raise ConfigError("member is empty: wants a member id or a group.instance.id")
    if member is not None and member.lower() in ROLES:
        raise ConfigError(
            f"member {member!r} is a role: wants a member id or a group.instance.id; write "
            f"role={member.lower()}, or [{member[0]}]{member[1:]} for an instance of that name"
        )


def _within(name: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        shown = value if -_MAX_COUNT <= value <= _MAX_COUNT else "out of 32 bits"
        raise ConfigError(f"{name} {shown}: wants {low} to {high}")


def api_named(name: str) -> ApiKey:
    """The API of a name, in any spelling.

    Raises:
        ConfigError: there is none.
    """
    api = _APIS.get(_plain(name))
    if api is None:
        near = get_close_matches(_plain(name[:_SHOWN]), _APIS, n=1)
        names = _APIS[near[0]].name if near else "JoinGroup, Fetch, ..."
        raise ConfigError(f"no API is called {_quoted(name)}; Kafka's names are {names}")
    return api


def error_named(name: str) -> ErrorCode:
    """The error of a name.

    Raises:
        ConfigError: there is none, or it is no error.
    """
    error = ErrorCode.__members__.get(name.upper().replace("-", "_"))
    if error is None or error is ErrorCode.NONE:
        near = get_close_matches(name[:_SHOWN].upper(), ErrorCode.__members__, n=1)
        names = near[0] if near else "NOT_COORDINATOR, ..."
        raise ConfigError(f"no error is called {_quoted(name)}; Kafka's names are {names}")
    return error


def _quoted(name: str) -> str:
    return repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "...")


def groups_of(request: Struct) -> Iterator[str]:
    """The group ids that a request names."""
    match request:
        case OffsetFetchRequest():
            yield from (group.group_id for group in request.groups)
        case DescribeGroupsRequest():
            yield from request.groups
        case DeleteGroupsRequest():
            yield from request.groups_names
        case ConsumerGroupDescribeRequest():
            yield from request.group_ids
        case FindCoordinatorRequest() if request.key_type == _GROUP_KEYS:
            yield from request.coordinator_keys
        case _ if isinstance(request, _OF_ONE_GROUP):
            yield request.group_id


def members_of(request: Struct) -> Iterator[str]:
    """The member ids and group instance ids that a request is sent for."""
    return (name for _, name in memberships_of(request))


def memberships_of(request: Struct) -> Iterator[tuple[str, str]]:
    """The members that a request is sent for: group id, and member id or group instance id."""
    found: Iterable[tuple[str, str | None]] = ()
    if isinstance(request, _OF_ONE_MEMBER):
        group_id = request.group_id
        found = ((group_id, request.member_id), (group_id, request.group_instance_id))
    elif isinstance(request, ConsumerGroupHeartbeatRequest):
        found = ((request.group_id, request.member_id),)
    elif isinstance(request, OffsetFetchRequest):
        found = ((group.group_id, group.member_id) for group in request.groups)
    elif isinstance(request, LeaveGroupRequest):
        found = (
            (request.group_id, name)
            for each in request.members
            for name in (each.member_id, each.group_instance_id)
        )
    yield from ((group_id, name) for group_id, name in found if name)


def _like(pattern: str | None, values: "Iterator[str] | tuple[str, ...]") -> bool:
    return pattern is None or any(fnmatchcase(value, pattern) for value in values)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _state(rule: _Rule) -> FaultState:
    return FaultState(
        fault_id=rule.fault_id, fault=rule.fault, fitting=rule.fitting, hits=rule.hits
    )


_APIS: Final = {_plain(api.name): api for api in ApiKey}
