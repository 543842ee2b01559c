"""What a recorded group is rehearsed with: its plan, and where each part of the plan comes from."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.clients.client_kind import kind_of_lines, refusal
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.kafka.profiles import ALIASES, PROFILES, Profile, profile_named
from coordinator_sim.replay.causes import group_named
from coordinator_sim.replay.costs import costs_of_rebalances
from coordinator_sim.replay.upgrade_hurdles import GROUP_PROTOCOL, Hurdle, hurdles_of
from coordinator_sim.replay.versions import VERSION_ATTR, profile_for
from coordinator_sim.sim.scenario.topology import Topology
from coordinator_sim.sim.scenario.upgrade import UpgradePlan
from coordinator_sim.trace.group_shape import SeenDeploys, SeenGroup, deploys_of, seen_group
from coordinator_sim.trace.history import coordinator_events, group_lines, rebalances_of
from coordinator_sim.trace.rebalances import epoch_groups_in
from coordinator_sim_reports.rehearsal_facts import Fact, Facts, Told, Wishes

_SHOWN: Final = 5


class GroupPlan(Struct, frozen=True, kw_only=True):
    """A recorded group, and how it is rehearsed.

    Args:
        seen: What the trace tells of it.
        deploys: Its recorded deploys.
        rebalances: Number of its recorded rebalances.
        plan: Of its deploys; None where there is none.
        not_rehearsed: Why there is none; empty otherwise.
        facts: What the figures rest on.
        hurdles: What stands in the way of the upgrade.
        needs_release: Whether the trace's brokers have no consumer protocol.
    """

    seen: SeenGroup
    deploys: SeenDeploys
    rebalances: int
    plan: UpgradePlan | None
    not_rehearsed: str
    facts: tuple[Fact, ...]
    hurdles: tuple[Hurdle, ...]
    needs_release: bool

    @property
    def group_id(self) -> str:
        """The group's id."""
        return self.seen.group_id

    @property
    def recorded_s(self) -> float:
        """Seconds from its first event to its last one."""
        return (self.seen.last_us - self.seen.first_us) / 1_000_000


def plans_of(told: Told, wishes: Wishes, group_id: str = "") -> tuple[list[GroupPlan], list[str]]:
    """Return the classic groups of a trace with their plans, and the names of those left out.

    Args:
        told: The trace.
        wishes: What the command line says.
        group_id: The only group wanted; empty for those with most rebalances.

    Raises:
        ConfigError: the trace has no such group, or the release has no consumer protocol.
        DataError: there is none to rehearse; the message has the fix.
    """
    if not profile_named(wishes.profile).has_coordinator_runtime:
        raise ConfigError(f"--profile {wishes.profile}: the consumer protocol came with 4.0")
    converted = epoch_groups_in(told.events)
    counts = _classic_groups(told, frozenset(converted))
    if group_id:
        group_named(group_id, dict.fromkeys(each.group_id for each in told.events if each.group_id))
    if group_id and group_id not in counts:
        _refuse(told.where, group_id, counts, converted)
    if not counts:
        names = ", ".join(list(converted)[:_SHOWN])
        why = (
            f"its groups ({names}) are of a protocol with epochs already"
            if converted
            else "no group in it has a rebalance"
        )
        raise DataError(
            f"{told.where}: no classic group to rehearse: {why}; "
            f"coordinator-sim explain {told.where} lists its groups"
        )
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    chosen = [group_id] if group_id else ordered[: wishes.top]
    plans = [_plan(name, counts[name], told, wishes) for name in chosen]
    if not any(each.plan for each in plans):
        first = plans[0]
        raise DataError(f"{told.where}: group {first.group_id!r}: {first.not_rehearsed}")
    return plans, [] if group_id else ordered[wishes.top :]


def _refuse(
    where: str, group_id: str, counts: Mapping[str, int], converted: Mapping[str, str]
) -> None:
    if group_id in converted:
        raise DataError(
            f"{where}: group {group_id!r} is a {converted[group_id]} group already, at least for a "
            f"part of the trace; coordinator-sim explain {where} {group_id} tells of its epochs"
        )
    named = ", ".join(list(counts)[:_SHOWN])
    others = f"; it has those of {named}" if named else ""
    raise DataError(f"{where}: no rebalance of group {group_id!r} is in the trace{others}")


def _classic_groups(told: Told, converted: frozenset[str]) -> dict[str, int]:
    """Return the number of rebalances of every classic group that has some."""
    lines = group_lines(coordinator_events(told.events, told.info.source))
    counts = {
        name: len(rebalances_of(name, own)) for name, own in lines.items() if name not in converted
    }
    return {name: count for name, count in counts.items() if count}


def _plan(group_id: str, rebalances: int, told: Told, wishes: Wishes) -> GroupPlan:
    own = [event for event in told.events if event.group_id == group_id]
    seen = seen_group(own, group_id)
    if seen is None:
        raise DataError(f"{told.where} tells of no members of group {group_id!r}")
    work = told.known.work_of(group_id)
    version, profile = brokers_of(told)
    deploys = deploys_of(seen)
    topics = {} if work is None or work.is_connect else work.topics
    facts = Facts(seen, deploys, told, wishes)
    facts.topics(topics, is_given=work is not None and work.is_given)
    facts.subscriptions(() if work is None else work.subscriptions.values())
    assignor = facts.assignor(
        work.protocol if work is not None else None, _follow_ups(group_id, told)
    )
    not_rehearsed = ""
    why = refusal(kind_of_lines(own), GROUP_PROTOCOL)
    if why is not None:
        not_rehearsed = why
    elif not topics:
        not_rehearsed = (
            "the trace does not tell how many partitions its topics have (broker logs never do): "
            "add --partitions TOPIC=N for each of them"
        )
    shaped = replace(seen, topics=topics, assignor=seen.assignor or assignor)
    needs_release = not profile.has_coordinator_runtime
    newest = profile_named(wishes.profile) if needs_release else profile
    plan = None
    if not not_rehearsed:
        plan = UpgradePlan(
            group=_topology(shaped, assignor),
            pace_ms=facts.pace_ms(),
            down_ms=facts.down_ms(),
            classic=facts.classic_settings(),
            consumer=facts.consumer_settings(),
            profile=newest.name,
            today=profile.name,
        )
    facts.brokers(version, plan)
    facts.unknown()
    return GroupPlan(
        seen=shaped,
        deploys=deploys,
        rebalances=rebalances,
        plan=plan,
        not_rehearsed=not_rehearsed,
        facts=tuple(facts.found),
        hurdles=tuple(hurdles_of(shaped, own, version)),
        needs_release=needs_release,
    )


def brokers_of(told: Told) -> tuple[str | None, Profile]:
    """Return the versions that the brokers may have, None for unknown, and their profile."""
    info = told.info
    if info.profile in PROFILES or info.profile in ALIASES:
        profile = profile_named(info.profile)
        return profile.name, profile
    ranges = [each.attrs[VERSION_ATTR] for each in told.events if VERSION_ATTR in each.attrs]
    version = ranges[-1] if ranges else None
    return version, profile_for(version).profile


def _follow_ups(group_id: str, told: Told) -> int:
    """Return the number of second rounds, which only cooperative assignors ask for."""
    own = [event for event in told.events if event.group_id == group_id]
    lines = group_lines(coordinator_events(own, told.info.source))[group_id]
    rebalances = rebalances_of(group_id, lines)
    return sum(each.is_follow_up for each in costs_of_rebalances(rebalances, lines))


def _topology(seen: SeenGroup, assignor: str) -> Topology:
    partitions = sum(seen.topics.values())
    return Topology(
        name="group",
        title=f"Like {seen.group_id}",
        story=f"{len(seen.members):,} consumers of {partitions:,} partitions, as group "
        f"{seen.group_id}.",
        group_id=seen.group_id,
        topics=seen.topics,
        members=seen.members,
        assignors=(assignor,),
        restarts=(),
        duration_ms=60_000,
    )
