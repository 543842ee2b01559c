"""Replays a group under other settings, and sets each run beside the run as it is.

A plan whose dynamic members have become static: `group.instance.id=stable`.

Every process keeps one instance id over its restarts. A static member that stops in good order
sends no LeaveGroup: it falls silent where the trace has it leave, and comes back where the trace
has its successor join. Source: KIP-345; AbstractCoordinator.maybeLeaveGroup.
"""

from collections.abc import Sequence
from dataclasses import replace as changed
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.clients.client_kind import ClientKind, refusal
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.kafka.profiles import Profile, profile_named
from coordinator_sim.replay.assumptions import ASSUMED_OF_SETTINGS
from coordinator_sim.replay.compare import figures
from coordinator_sim.replay.consumer_protocol.run import ASSUMED, Asked, play
from coordinator_sim.replay.driver import Driver
from coordinator_sim.replay.plan import Actor, Ending, GroupPlan, Step, StepKind
from coordinator_sim.replay.report import GroupFidelity, RunFigures, WhatIf
from coordinator_sim.replay.restarts import (
    NOBODY,
    Passage,
    Restart,
    client_of,
    outlived_in,
    restarts_in,
)
from coordinator_sim.replay.settings import (
    CONNECT_PROTOCOL,
    DYNAMIC,
    GROUP_PROTOCOL,
    SCHEDULED_DELAY,
    STRATEGY,
    UNKNOWN,
    Settings,
)
from coordinator_sim.replay.sharing import SharingCosts, sharing_costs
from coordinator_sim.replay.strategies import ConnectStrategy, ConsumerStrategy, Strategy
from coordinator_sim.replay.work import GroupWork, OwnTimes
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.window import ALWAYS, Window

_GOES: Final = frozenset({Ending.LEFT, Ending.FAILED, Ending.KICKED})
"""Endings after which a process may come back."""


class StablePlan(Struct, frozen=True):
    """A plan of static members.

    Args:
        restarts: Restarts that were recognised, in order of return.
        leavers: Members that would have left and now go silent.
        outlived: Members that still ran when those joined that replaced them: no place is kept.
    """

    plan: GroupPlan
    restarts: list[Restart]
    leavers: int
    outlived: int


def has_static_members(plan: GroupPlan) -> bool:
    """Whether some member of the source is static."""
    return any(actor.group_instance_id is not None for actor in plan.actors)


def with_stable_ids(plan: GroupPlan, session_timeout_ms: int) -> StablePlan:
    """Return the plan with an instance id for every member; the given one is not changed.

    Args:
        plan: The plan of the source.
        session_timeout_ms: Session timeout of the members: a process that is away for longer has
            lost its membership.
    """
    actors = [changed(actor) for actor in plan.actors]
    passages = _passages(actors)
    outlived = outlived_in(passages, session_timeout_ms - 1)
    kept = [each for each in passages if each.index not in outlived]
    restarts = restarts_in(kept, lambda _: session_timeout_ms - 1)
    followers = {restart.came.index: restart.gone.index for restart in restarts}
    _give_instances(actors, followers)
    returned = set(followers.values())
    dynamic = {each.index for each in plan.actors if each.group_instance_id is None}
    leavers: list[int] = []
    for actor in actors:
        if actor.index in dynamic and actor.ending is Ending.LEFT and actor.ends_ms is not None:
            actor.silent_ms = actor.ends_ms
            leavers.append(actor.ends_ms)
            if actor.index not in returned:
                actor.ending = Ending.FAILED
                actor.session_timeout_ms = session_timeout_ms
                actor.nominal_session_timeout_ms = session_timeout_ms
    turns = [*leavers, *(restart.came.at_ms for restart in restarts)]
    static = changed(
        plan,
        actors=actors,
        steps=_static_steps(plan, dynamic, followers),
        parts_ms=min(turns, default=None),
    )
    ended = sum(not each.comes and each.index in outlived for each in passages)
    return StablePlan(static, restarts, len(leavers), ended)


def _passages(actors: list[Actor]) -> list[Passage]:
    """Return who comes and goes; members that are static already keep to themselves."""
    passages = []
    for actor in actors:
        if actor.group_instance_id is not None or actor.joined is None:
            continue
        client = client_of(actor.name)
        if actor.arrives_ms is not None:
            passages.append(Passage(actor.arrives_ms, actor.index, client, comes=True))
        if actor.ending in _GOES and actor.ends_ms is not None:
            silent_ms = actor.silent_ms if actor.silent_ms is not None else actor.ends_ms
            passages.append(Passage(silent_ms, actor.index, client, comes=False))
    return passages


def _give_instances(actors: list[Actor], followers: dict[int, int]) -> None:
    """Give every process an instance id: its client id, numbered where several share it."""
    taken = {actor.group_instance_id for actor in actors if actor.group_instance_id is not None}
    counts: dict[str, int] = {}
    # A process is named before its successor, because nobody comes before who went.
    for actor in sorted(actors, key=lambda each: (_came_ms(each), each.index)):
        if actor.group_instance_id is not None:
            continue
        former = followers.get(actor.index)
        if former is not None and actors[former].group_instance_id is not None:
            actor.group_instance_id = actors[former].group_instance_id
            continue
        client = client_of(actor.name) or "unnamed"
        name = client if client != NOBODY and client not in taken else ""
        while not name or name in taken:
            counts[client] = counts.get(client, 1) + 1
            name = f"{client}~{counts[client]}"
        taken.add(name)
        actor.group_instance_id = name


def _came_ms(actor: Actor) -> int:
    return -1 if actor.arrives_ms is None else actor.arrives_ms


def _static_steps(plan: GroupPlan, dynamic: set[int], followers: dict[int, int]) -> list[Step]:
    """Return the steps of static members, which ask for no id and do not leave."""
    steps = []
    for step in plan.steps:
        match step.kind:
            case StepKind.ASK_ID if step.actors[0] in dynamic:
                continue
            case StepKind.LEAVE:
                stay = tuple(index for index in step.actors if index not in dynamic)
                if stay:
                    steps.append(replace(step, actors=stay))
            case StepKind.ARRIVE if step.actors[0] in followers:
                steps.append(replace(step, kind=StepKind.REPLACE))
            case _:
                steps.append(step)
    return steps


DEFAULT_SCHEDULED_DELAY_MS: Final = 300_000
"""Kafka's default of `scheduled.rebalance.max.delay.ms`."""
DEFAULT_SESSION_TIMEOUT_MS: Final = 45_000
"""Default of `session.timeout.ms` of Java consumers since 3.0 (KIP-735)."""
_NO_BEGINNINGS: Final = (
    "the source tells no beginning of any rebalance, so it is not known how long they took; "
    "ingest the broker's log or the request log of the same time with it"
)
_EAGER_CONNECT: Final = "eager"
_WIRE_EAGER: Final = "default"


class Subject(Struct, frozen=True, kw_only=True):
    """One group of one file, ready to be replayed under other settings.

    Args:
        plans: The plans of its episodes, in order of time.
        profile: Kafka release of the source.
        work: What its members share out; None where neither trace nor user tells.
        windows: Windows of time, milliseconds, that have figures of their own.
        shown: The time that counts.
        own_times: What its rebalances cost in time, as the trace tells; None where it is not known.
        client_kind: What its members are.
    """

    fidelity: GroupFidelity
    plans: list[GroupPlan]
    profile: Profile
    work: GroupWork | None
    windows: Sequence[tuple[int, int]] = ()
    shown: Window = ALWAYS
    own_times: OwnTimes | None = None
    client_kind: ClientKind = ClientKind.CONSUMER


class _Run(Struct):
    """One run over all episodes of a group."""

    figures: RunFigures
    events: list[TraceEvent]
    notes: tuple[str, ...]
    paired_by_time: int


class _Unfit(CoordinatorSimError):
    """Settings cannot be tried on a group; the message says why."""


def what_if(subject: Subject, grid: list[Settings]) -> tuple[list[WhatIf], list[TraceEvent]]:
    """Return the effect of every combination of settings on one group, and the last run's events.

    The stretches of the group that replay reproduces are replayed once as they are, by members
    that react, and once for each combination. A group without such a stretch has no figures, and
    neither has one of whose rebalances no beginning is told.
    """
    fidelity = subject.fidelity
    told = [plan for plan in subject.plans if plan.is_reproduced]
    if not told:
        share = 100 * fidelity.reproduced_share
        why = f"replay reproduces {share:.1f} % of what the source determines, and no stretch whole"
        return [_entry(subject, settings, not_computed=why) for settings in grid], []
    if not any(each.start for plan in told for each in plan.episode.rebalances):
        return [_entry(subject, settings, not_computed=_NO_BEGINNINGS) for settings in grid], []
    until_ms = _horizons(subject, grid)
    as_is = _run(subject, UNKNOWN, until_ms).figures
    entries: list[WhatIf] = []
    events: list[TraceEvent] = []
    for settings in grid:
        try:
            _check_fit(subject, settings)
            run = _run(subject, settings, until_ms)
        except _Unfit as why_not:
            entries.append(_entry(subject, settings, as_is, not_computed=str(why_not)))
            continue
        events = run.events
        entries.append(_entry(subject, settings, as_is, run=run))
    return entries, events


def drive(
    plan: GroupPlan, profile: Profile, settings: Settings, *, until_ms: int | None = None
) -> Driver:
    """Run a plan and return its driver; `until_ms` as in `Driver`."""
    driver = Driver(plan, profile, settings, until_ms=until_ms)
    driver.run()
    return driver


def events_of(driver: Driver, plan: GroupPlan) -> list[TraceEvent]:
    """Return the core's events from the source's first line on."""
    first_us = plan.episode.first_ms * 1000
    incarnation = plan.episode.incarnation
    return [
        replace(event, incarnation=incarnation) if incarnation else event
        for event in driver.events
        if event.ts_us >= first_us
    ]


def _entry(
    subject: Subject,
    settings: Settings,
    as_is: RunFigures | None = None,
    *,
    run: _Run | None = None,
    not_computed: str = "",
) -> WhatIf:
    return WhatIf(
        source_ref=subject.fidelity.source_ref,
        group_id=subject.fidelity.group_id,
        settings=settings.given,
        as_is=None if as_is is None else _on_own_scale(as_is, as_is, subject.own_times),
        with_settings=None
        if run is None or as_is is None
        else _on_own_scale(run.figures, as_is, subject.own_times),
        not_computed=not_computed,
        notes=() if run is None else run.notes,
        paired_by_time=0 if run is None else run.paired_by_time,
        coverage=subject.fidelity.coverage,
    )


def _on_own_scale(run: RunFigures, as_is: RunFigures, own: OwnTimes | None) -> RunFigures:
    """Return a run's figures with times on the scale of the trace's own.

    A replay as it is does not have every instant of the trace, so that its times are not quite the
    trace's. Each time becomes the trace's own and what the settings add to that of the replay.
    """
    if own is None:
        return run

    def scaled(own_ms: int | None, run_ms: int, as_is_ms: int) -> int:
        return run_ms if own_ms is None else max(0, own_ms + run_ms - as_is_ms)

    told = replace(
        run,
        rebalancing_ms=scaled(own.rebalancing_ms, run.rebalancing_ms, as_is.rebalancing_ms),
        is_bound=own.is_bound,
    )
    mine, before = run.sharing, as_is.sharing
    if mine is None or before is None:
        return told
    return replace(
        told,
        sharing=replace(
            mine,
            paused_ms=scaled(own.paused_ms, mine.paused_ms, before.paused_ms),
            stopped_ms=scaled(own.stopped_ms, mine.stopped_ms, before.stopped_ms),
            unowned_ms=scaled(own.unowned_ms, mine.unowned_ms, before.unowned_ms),
        ),
    )


def _horizons(subject: Subject, grid: list[Settings]) -> list[int]:
    """Return how far all runs go: until no timer is left, or the next episode begins."""
    slack_ms = max(_slack_ms(subject, plan, each) for each in grid for plan in subject.plans)
    horizons = []
    for plan, following in zip_longest(subject.plans, subject.plans[1:]):
        until_ms = plan.episode.last_ms + slack_ms
        if following is not None:
            until_ms = min(until_ms, following.episode.first_ms - 1)
        horizons.append(max(plan.episode.last_ms, until_ms))
    return horizons


def _slack_ms(subject: Subject, plan: GroupPlan, settings: Settings) -> int:
    """Return the time after a plan's last line in which these settings may still do something."""
    static_ms = session_timeout_of(plan, settings) if settings.makes_static else 0
    sharing_ms = 0
    if subject.work is not None:
        lengths = [(each.sync_ms or each.start_ms) - each.start_ms for each in plan.scripts]
        delay_ms = _scheduled_delay_ms(subject.work, settings) if subject.work.is_connect else 0
        sharing_ms = max(lengths, default=0) + delay_ms + 1
    return max(settings.slack_ms, static_ms, sharing_ms)


def session_timeout_of(plan: GroupPlan, settings: Settings) -> int:
    """Return the session timeout of a group's members: given, told, or else assumed."""
    return (
        settings.session_timeout_ms
        or plan.session_timeout_ms
        or plan.assumed_session_timeout_ms
        or DEFAULT_SESSION_TIMEOUT_MS
    )


def _check_fit(subject: Subject, settings: Settings) -> None:
    """Raise `_Unfit` for settings that this group cannot be tried with."""
    plans, work = subject.plans, subject.work
    heartbeat_ms, session_ms = settings.heartbeat_interval_ms, settings.session_timeout_ms
    told_ms = [plan.session_timeout_ms for plan in plans if plan.session_timeout_ms is not None]
    if heartbeat_ms is not None and session_ms is None and told_ms and heartbeat_ms >= min(told_ms):
        raise _Unfit(
            f"heartbeat.interval.ms={heartbeat_ms} is not below the group's "
            f"session.timeout.ms={min(told_ms)}, so its clients would not start"
        )
    if settings.group_instance_id == DYNAMIC and any(map(has_static_members, plans)):
        raise _Unfit("its members are static, and no line tells when their processes stopped")
    profile = _profile(subject, settings)
    if settings.makes_static and not profile.static_membership:
        raise _Unfit(f"Kafka {profile.name} has no static membership; 2.3 was the first")
    if settings.is_consumer_protocol and not profile.has_coordinator_runtime:
        raise _Unfit(
            f"Kafka {profile.name} has no consumer protocol, which came with 4.0: add --profile 4.4"
        )
    for name in settings.given:
        why = refusal(subject.client_kind, name)
        if why is not None and not (name == GROUP_PROTOCOL and not settings.is_consumer_protocol):
            raise _Unfit(why)
    needed = {
        GROUP_PROTOCOL: settings.group_protocol if settings.is_consumer_protocol else None,
        STRATEGY: settings.partition_assignment_strategy,
        CONNECT_PROTOCOL: settings.connect_protocol,
        SCHEDULED_DELAY: settings.scheduled_rebalance_max_delay_ms,
    }
    given = [name for name, value in needed.items() if value is not None]
    if given and work is None:
        raise _Unfit(
            f"{given[0]} needs to know what is shared out, and the trace holds no assignments; "
            "give --partitions topic=N"
        )


def _profile(subject: Subject, settings: Settings) -> Profile:
    """Return the core's release, made to take new timeouts: those of a replay are its own."""
    profile = subject.profile if settings.profile is None else profile_named(settings.profile)
    return replace(profile, refreshes_timeouts=True)


def _run(subject: Subject, settings: Settings, until_ms: list[int]) -> _Run:
    profile = _profile(subject, settings)
    parts: list[RunFigures] = []
    events: list[TraceEvent] = []
    restarts = by_time = outlived = 0
    dropped: set[object] = set()
    special: dict[str, None] = {}
    for plan, horizon_ms in zip(subject.plans, until_ms, strict=True):
        if not plan.is_reproduced:
            continue
        own = plan
        if settings.makes_static:
            stable = with_stable_ids(plan, session_timeout_of(plan, settings))
            own = stable.plan
            restarts += len(stable.restarts)
            by_time += sum(not each.is_by_name for each in stable.restarts)
            outlived += stable.outlived
        if settings.is_consumer_protocol and subject.work is not None:
            asked = Asked(
                work=subject.work,
                settings=settings,
                profile=profile,
                until_ms=horizon_ms,
                windows=tuple(subject.windows),
                shown=subject.shown,
            )
            epochs = play(own, asked, dropped)
            parts.append(epochs.figures)
            events.extend(epochs.events)
            special.update(dict.fromkeys(epochs.notes))
            continue
        driver = drive(own, profile, settings, until_ms=horizon_ms)
        told = events_of(driver, plan)
        sharing = _sharing(subject, settings, driver, horizon_ms, dropped, is_new=not plan.loaded)
        parts.append(figures(told, driver.course, sharing, subject.windows, subject.shown))
        events.extend(told)
    notes: list[str] = []
    if settings.makes_static:
        timeout_ms = session_timeout_of(subject.plans[0], settings)
        notes = _static_notes(timeout_ms, restarts, by_time, outlived)
    summed = _sum(parts)
    if summed.sharing is not None:
        summed = replace(
            summed,
            never_stopped=summed.sharing.items - len(dropped),
            is_epochs=settings.is_consumer_protocol,
        )
    return _Run(summed, events, (*notes, *special), by_time)


def _static_notes(timeout_ms: int, restarts: int, by_time: int, outlived: int) -> list[str]:
    kept = (
        f"{restarts} restarts are shorter than session.timeout.ms={timeout_ms}, so that their "
        "members keep their places"
    )
    notes = [kept]
    if by_time:
        notes.append(
            f"{by_time} of these are paired by time alone, because their client.id changed or is "
            "not told"
        )
    if outlived:
        notes.append(
            f"{outlived} processes still ran when those joined that replaced them; their "
            "instance ids were in use, so that nobody takes their places"
        )
    return notes


def _sharing(
    subject: Subject,
    settings: Settings,
    driver: Driver,
    until_ms: int,
    dropped: set[object],
    *,
    is_new: bool,
) -> SharingCosts | None:
    strategy = None if subject.work is None else _strategy(subject.work, settings)
    if strategy is None:
        return None
    return sharing_costs(
        driver.course, strategy, until_ms, dropped, is_new=is_new, window=subject.shown
    )


def _strategy(work: GroupWork, settings: Settings) -> Strategy | None:
    """Return the strategy of the settings, or of the trace; None where neither is known."""
    if work.is_connect:
        told = _EAGER_CONNECT if work.protocol == _WIRE_EAGER else work.protocol
        protocol = settings.connect_protocol or told or _EAGER_CONNECT
        return ConnectStrategy(protocol, work, _scheduled_delay_ms(work, settings))
    name = settings.partition_assignment_strategy or work.protocol
    return ConsumerStrategy(name, work) if name in CONSUMER_ASSIGNORS and name else None


def _scheduled_delay_ms(work: GroupWork, settings: Settings) -> int:
    given_ms = settings.scheduled_rebalance_max_delay_ms
    told_ms = work.scheduled_delay_ms if given_ms is None else given_ms
    return DEFAULT_SCHEDULED_DELAY_MS if told_ms is None else told_ms


def assumed_of(settings: Settings) -> list[str]:
    """Return the assumptions of these settings; those of every what-if are omitted."""
    assumed = [
        text for name, text in ASSUMED_OF_SETTINGS.items() if getattr(settings, name) is not None
    ]
    return [*assumed, *ASSUMED] if settings.is_consumer_protocol else assumed


def _sum(runs: list[RunFigures]) -> RunFigures:
    outcomes: dict[str, int] = {}
    for run in runs:
        for name, count in run.outcomes.items():
            outcomes[name] = outcomes.get(name, 0) + count
    sharing: SharingCosts | None = None
    for run in runs:
        if run.sharing is not None:
            sharing = run.sharing if sharing is None else sharing.plus(run.sharing)
    return RunFigures(
        rebalances=sum(run.rebalances for run in runs),
        last_generation=runs[-1].last_generation,
        join_ms=sum(run.join_ms for run in runs),
        rebalancing_ms=sum(run.rebalancing_ms for run in runs),
        removed=sum(run.removed for run in runs),
        unnoticed_ms=sum(run.unnoticed_ms for run in runs),
        outcomes=dict(sorted(outcomes.items())),
        returns=sum(run.returns for run in runs),
        away_ms=sum(run.away_ms for run in runs),
        sharing=sharing,
        within_ms=tuple(sum(each) for each in zip(*(run.within_ms for run in runs), strict=True)),
    )
