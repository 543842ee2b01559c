"""The same load on another kind of group: classic, of the consumer protocol, or a share group."""

from typing import Any, Final, Literal

import msgspec

from coordinator_sim.clients.config import CLASSIC, CONSUMER, refused_by
from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.scenario import world
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.settings import SETTINGS, STRATEGY, Scope
from coordinator_sim.sim.scenario.work import CommitPolicy

SHARE: Final = "share"
_CONSUMERS: Final = (*SETTINGS[Scope.CONSUMER], STRATEGY)
READ: Final = {
    CLASSIC: tuple(name for name in _CONSUMERS if name not in refused_by(CLASSIC)),
    CONSUMER: tuple(name for name in _CONSUMERS if name not in refused_by(CONSUMER)),
    SHARE: (*SETTINGS[Scope.SHARE], *SETTINGS[Scope.SHARE_GROUP]),
}
"""Settings that each kind of group and its members may have."""
_ACKNOWLEDGES: Final[dict[str, Literal["poll", "sync", "async"]]] = {
    "auto": "poll",
    "interval": "poll",
    "sync": "sync",
    "every": "sync",
    "async": "async",
}
"""When a share consumer acknowledges instead of committing."""
_OWN_RHYTHM: Final = ("every", "interval")
"""Commits after a number of records or a time; a share consumer acknowledges each poll."""
_ASSIGNORS: Final = world.ConsumerGroupSpec(group_id="", topics=(), members=()).assignors
_OF_GROUP: Final = ("group_id", "topics")
_OF_MEMBER: Final = ("name", "start_ms", "processing_ms", "processing")
_OF_CONSUMERS: Final = ("instance_id", "rack", "callback_ms")
"""Fields of consumers that share consumers lack."""


def as_kind(scenario: Scenario, kind: str) -> Scenario:
    """Return the scenario with all its consumer and share groups of one kind.

    Members keep their names, starts and processing, and those of their settings that the kind
    reads. A share group has no assignor, static member, rack or callback; its members acknowledge
    implicitly, at the moments at which they committed.

    Raises:
        ConfigError: the scenario has no such group.
        ScenarioError: a group or a happening does what the kind does not know.
    """
    plain = [each for each in scenario.groups if _is_plain(each)]
    if not plain:
        raise ConfigError(f"kind {kind!r}: scenario {scenario.name!r} has no consumer group")
    if kind == SHARE and scenario.kubernetes:
        raise ScenarioError(
            f"kind 'share': workload {scenario.kubernetes[0].name!r} scales consumer groups alone; "
            "leave kubernetes out"
        )
    for happening in scenario.happenings:
        asked = getattr(happening, "settings", {})
        for name in asked:
            if name not in READ[kind] or name == "group.protocol":
                what = f"{name}={asked[name]} of {type(happening).__name__}"
                raise ScenarioError(f"kind {kind!r}: {what} has no counterpart; leave it out")
    groups = (_as(each, kind) if each in plain else each for each in scenario.groups)
    return msgspec.structs.replace(scenario, groups=tuple(groups))


def left_out(scenario: Scenario, kind: str) -> tuple[str, ...]:
    """Return what a scenario's groups and members say that those of a kind do not know."""
    names: set[str] = set()
    for group in filter(_is_plain, scenario.groups):
        names.update(getattr(group, "group_settings", {}))
        for each in (group, *world.members_of(group)):
            names.update(each.settings)
            if kind == SHARE:
                names.update(name for name in _OF_CONSUMERS if getattr(each, name, None))
                if isinstance(each, world.ConsumerSpec) and each.commits.when in _OWN_RHYTHM:
                    names.add("commits")
                if getattr(each, "assignors", _ASSIGNORS) != _ASSIGNORS:
                    names.add(STRATEGY)
            elif getattr(each, "acknowledges", "") == "explicit":
                names.add("acknowledges")
    return tuple(sorted(names.difference(READ[kind], ["group.protocol"])))


def _is_plain(group: world.GroupSpec) -> bool:
    kinds = world.ConsumerGroupSpec, world.ShareGroupSpec
    return isinstance(group, kinds) and not isinstance(group, world.StreamsGroupSpec)


def _as(group: world.GroupSpec, kind: str) -> world.GroupSpec:
    if kind == SHARE:
        return _shared(group) if isinstance(group, world.ConsumerGroupSpec) else group
    if isinstance(group, world.ShareGroupSpec):
        group = _consumers(group)
    if isinstance(group, world.ConsumerGroupSpec):
        return world.with_new_configuration(group, {"group.protocol": kind})
    return group


def _shared(group: world.ConsumerGroupSpec) -> world.ShareGroupSpec:
    _check_sharing(group)
    members = (
        world.ShareConsumerSpec(**_common(each), commits=_ACKNOWLEDGES[each.commits.when])
        for each in group.members
    )
    return world.ShareGroupSpec(**_common(group), members=tuple(members))


def _consumers(group: world.ShareGroupSpec) -> world.ConsumerGroupSpec:
    for each in group.members:
        if each.fates != world.RecordFates():
            raise _unknown(group, f"fates of {each.name!r}", "give the topic poison instead")
    members = (
        world.ConsumerSpec(
            **_common(each),
            commits=CommitPolicy(when="auto" if each.commits == "poll" else each.commits),
        )
        for each in group.members
    )
    return world.ConsumerGroupSpec(**_common(group), members=tuple(members))


def _check_sharing(group: world.ConsumerGroupSpec) -> None:
    if group.pattern is not None:
        raise _unknown(group, f"pattern={group.pattern!r}", "name the topics")
    for each in group.members:
        if each.topics is not None:
            raise _unknown(group, f"topics of {each.name!r}", "let all members read the group's")
        if each.client != "java":
            raise _unknown(group, f"client={each.client!r}", "use java")
        if each.commits.when not in _ACKNOWLEDGES:
            raise _unknown(group, f"commits when={each.commits.when!r}", "use auto or sync")


def _common(part: world.GroupSpec | world.MemberSpec) -> dict[str, Any]:
    """Return the fields that a group or a member has as either kind."""
    names = _OF_GROUP if hasattr(part, "group_id") else _OF_MEMBER
    is_shared = isinstance(part, world.ShareGroupSpec | world.ShareConsumerSpec)
    read = READ[CONSUMER if is_shared else SHARE]
    kept = {name: value for name, value in part.settings.items() if name in read}
    return {**{name: getattr(part, name) for name in names}, "settings": kept}


def _unknown(group: world.GroupSpec, what: str, fix: str) -> ScenarioError:
    where = f"group {group.group_id!r} as another kind"
    return ScenarioError(f"{where}: {what} has no counterpart; {fix}")
