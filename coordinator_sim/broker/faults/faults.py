"""Fault rules: which requests a served cluster mistreats on purpose, and how.

A rule selects requests by fields of the protocol and does one thing to them, before or after the
cluster takes them. `Faults` is asked about every request; the first rule that matches acts. The
connection carries out what an action does to bytes and slots.
"""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from enum import Enum, unique
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from msgspec import Struct

from coordinator_sim.broker.contract import Call
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.roles import COORDINATOR, ROLES

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
_ALL_ROLES: Final = (*ROLES, COORDINATOR)


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
            `coordinator`: the broker coordinates a group that the request names.
        broker: Id of the broker that the request reached.
        connection: Number of the connection, as `GET /v1/connections` shows it.
        nth: Act on only this one of the requests that the other fields match, counted from 1.
        every: Act on every so many-th of them; excludes `nth`.
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
    every: int | None = None
    probability: float = 1.0


class _Action(Struct, frozen=True, omit_defaults=True, tag_field="do", forbid_unknown_fields=True):
    """What a rule does; `do` names it."""


class Drop(_Action, frozen=True, tag="drop"):
    """Never answer. Later requests of the connection stay unanswered too, as answers keep order."""


class Lose(_Action, frozen=True, tag="lose"):
    """Lose the answer on its way; later answers of the connection arrive, which no TCP does."""


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
    Drop
    | Lose
    | Delay
    | Fail
    | Close
    | Duplicate
    | Reorder
    | FailAppend
    | SlowAppend
    | MoveCoordinator
)


class Fault(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule.

    Args:
        times: How often the rule acts at most; None for no limit.
        for_ms: Wall time for which the rule acts, up to a day; None for no end.
    """

    action: Action
    match: Match = Match()
    phase: Phase = Phase.BEFORE
    times: int | None = None
    for_ms: int | None = None


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
        self.is_over = False

    @property
    def is_used_up(self) -> bool:
        fault, nth = self.fault, self.fault.match.nth
        return (
            self.is_over
            or (fault.times is not None and self.hits >= fault.times)
            or (nth is not None and self.fitting >= nth)
        )

    def acts_on(self, call: Call[Any], faults: "Faults") -> bool:
        match = self.fault.match
        if self.is_used_up or not (self._fits(call) and self._fits_role(call, faults)):
            return False
        self.fitting += 1
        if match.nth is not None and self.fitting != match.nth:
            return False
        if match.every is not None and self.fitting % match.every:
            return False
        if match.probability < 1 and faults.chance() >= match.probability:
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

    def _fits_role(self, call: Call[Any], faults: "Faults") -> bool:
        match = self.fault.match
        if match.role == COORDINATOR:
            return any(
                _like(match.group, (group_id,)) and faults.coordinates(call.broker_id, group_id)
                for group_id in groups_of(call.request)
            )
        return match.role is None or any(
            _like(match.group, (group_id,))
            and _like(match.member, (name,))
            and faults.role_of(group_id, name) == match.role
            for group_id, name in memberships_of(call.request)
        )


class Faults:
    """The rules of a cluster.

    Args:
        chance: Draws for rules with a probability.

    Attributes:
        chance: As above.
        rules: In order; empty as a rule.
    """

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.rules: list[_Rule] = []
        self._last_id = 0
        self.heard: Callable[[int, Call[Any], Action], None] | None = None
        """Called on every hit, with the rule's id; None for no listener."""
        self.check: Callable[[Fault], None] = lambda _fault: None
        """Raises ConfigError for a rule that the cluster cannot use."""
        self.role_of: RoleOf = lambda _group_id, _name: None
        self.coordinates: Callable[[int, str], bool] = lambda _broker_id, _group_id: False
        """Whether a broker coordinates a group."""

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

    def end(self, fault_id: int) -> None:
        """Let a rule act no more; its counts stay."""
        for rule in self.rules:
            rule.is_over = rule.is_over or rule.fault_id == fault_id

    @property
    def is_pending(self) -> bool:
        """Whether some rule may still act."""
        return any(not rule.is_used_up for rule in self.rules)

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
            if rule.fault.phase is phase and rule.acts_on(call, self):
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
    _within("every", match.every, 1, _MAX_COUNT)
    if match.nth is not None and match.every is not None:
        raise ConfigError("nth and every: give one, as nth acts once and every again and again")
    _within("for_ms", fault.for_ms, 1, LONGEST_DELAY_MS)
    _within("times", fault.times, 1, _MAX_COUNT)
    _within("connection", match.connection, 1, _MAX_COUNT)
    _within("broker", match.broker, 0, _MAX_COUNT)
    _check_versions(match)
    _check_member(match.member)
    if match.role is not None and match.role not in _ALL_ROLES:
        raise ConfigError(f"role {match.role!r}: wants {' or '.join(_ALL_ROLES)}")
    _check_action(fault.action, fault.phase)


def _check_action(action: Action, phase: Phase) -> None:
    if isinstance(action, Delay):
        _within("delay ms", action.ms, 0, LONGEST_DELAY_MS)
    if isinstance(action, Reorder):
        _within("reorder ms", action.ms, 1, LONGEST_DELAY_MS)
    if isinstance(action, Lose | Duplicate | Reorder) and phase is Phase.BEFORE:
        raise ConfigError(
            "lose, duplicate and reorder are done to answers: give phase after (--after)"
        )
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


def groups_of(request: Any) -> Iterator[str]:  # noqa: ANN401 - any request of `messages`
    """The group ids that a request names."""
    if getattr(request, "key_type", None) == _GROUP_KEYS:
        yield from request.coordinator_keys
    for listed in ("groups", "groups_names", "group_ids"):
        for each in getattr(request, listed, ()):
            yield each if isinstance(each, str) else each.group_id
    if (group_id := getattr(request, "group_id", None)) is not None:
        yield group_id


def members_of(request: Struct) -> Iterator[str]:
    """The member ids and group instance ids that a request is sent for."""
    return (name for _, name in memberships_of(request))


def memberships_of(request: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - as above
    """The members that a request is sent for: group id, and member id or group instance id."""
    own = getattr(request, "group_id", None)
    for each in (request, *getattr(request, "members", ()), *getattr(request, "groups", ())):
        group_id = getattr(each, "group_id", own)
        for name in (getattr(each, "member_id", ""), getattr(each, "group_instance_id", "")):
            if group_id is not None and name:
                yield group_id, name


def delay_of(action: Action) -> int:
    """The time in ms by which an action makes something late; 0 for none."""
    return action.ms if isinstance(action, Delay | Reorder | SlowAppend) else 0


def as_json(value: Struct) -> str:
    """A rule, or a part of it, as one line of JSON."""
    return msgspec.json.encode(value).decode()


def literal(name: str | None) -> str | None:
    """A pattern that fits this text alone."""
    return None if name is None else re.sub(r"[*?[]", r"[\g<0>]", name)


def _like(pattern: str | None, values: "Iterator[str] | tuple[str, ...]") -> bool:
    return pattern is None or any(fnmatchcase(value, pattern) for value in values)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _state(rule: _Rule) -> FaultState:
    return FaultState(
        fault_id=rule.fault_id, fault=rule.fault, fitting=rule.fitting, hits=rule.hits
    )


_APIS: Final = {_plain(api.name): api for api in ApiKey}
