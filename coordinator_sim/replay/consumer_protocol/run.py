"""One episode of a recorded group under the consumer protocol: its events and its figures."""

from typing import Final

from msgspec import Struct

from coordinator_sim.clients.settings_advice import SERVER_ASSIGNORS
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.replay.compare import figures
from coordinator_sim.replay.consumer_protocol.driver import ConsumerDriver, Manner
from coordinator_sim.replay.consumer_protocol.ledger import Ledger, Window
from coordinator_sim.replay.consumer_protocol.lives import lives_of
from coordinator_sim.replay.consumer_protocol.players import Member, Topics
from coordinator_sim.replay.pace import Pace
from coordinator_sim.replay.plan import NEVER_MS, GroupPlan
from coordinator_sim.replay.report import RunFigures
from coordinator_sim.replay.settings import (
    CONSUMER_HEARTBEAT_INTERVAL_MS,
    CONSUMER_SESSION_TIMEOUT_MS,
    Settings,
)
from coordinator_sim.replay.work import GroupWork
from coordinator_sim.trace.events import TraceEvent

_LEAD_MS: Final = 120_000
"""Time for the members of the beginning to join and to share everything out."""
_REBALANCE_TIMEOUT_MS: Final = 300_000
"""Default of `max.poll.interval.ms`."""
ASSUMED: Final = (
    "members come and go as the classic ones did; one that was late to rejoin leaves instead",
    "members give up and take over at a poll, by which the slowest one usually rejoined, too",
    "settings of the broker that are not given are Kafka's defaults, as group.consumer.*",
    "a static member that was replaced had closed in good order, with a heartbeat of epoch -2",
)
"""What figures under the consumer protocol assume beside the rest."""


class EpochRun(Struct, frozen=True):
    """One episode under the consumer protocol.

    Args:
        events: Events of the core, from the source's first line on.
        notes: What is special about it, one sentence each.
    """

    events: list[TraceEvent]
    figures: RunFigures
    notes: tuple[str, ...]


class Asked(Struct, frozen=True, kw_only=True):
    """What to play an episode with.

    Args:
        work: What the members share out.
        until_ms: Where the run ends, milliseconds of the trace.
        windows: Windows of time, milliseconds, that have figures of their own.
    """

    work: GroupWork
    settings: Settings
    profile: Profile
    until_ms: int
    windows: tuple[tuple[int, int], ...] = ()


def play(plan: GroupPlan, asked: Asked, dropped: set[object]) -> EpochRun:
    """Play a plan's members as members of the consumer protocol.

    Args:
        plan: The plan; it is not changed.
        asked: What to play it with.
        dropped: Gets the partitions that lost a working owner.
    """
    work = asked.work
    told = lives_of(plan)
    topics = Topics(work.topics)
    every = tuple(work.topics)
    members = [Member(life, work.subscriptions.get(life.client, every)) for life in told.lives]
    first_ms = plan.scripts[0].start_ms if plan.scripts else plan.episode.first_ms
    ledger = Ledger(work.size, Window(first_ms, asked.until_ms), dropped)
    manner = manner_of(plan, asked.settings)
    driver = ConsumerDriver(members, topics, manner, asked.profile, ledger)
    first_us = plan.episode.first_ms * 1000
    events = [
        event
        for event in driver.run(plan.episode.first_ms - _LEAD_MS, asked.until_ms)
        if event.ts_us >= first_us
    ]
    is_uniform = len({frozenset(own) for own in work.subscriptions.values()}) <= 1
    sharing = ledger.costs(f"server:{manner.assignor}", is_uniform=is_uniform)
    notes = []
    if told.own_rejoins:
        notes.append(
            f"{told.own_rejoins} rejoins of members for reasons of their own are left out, because "
            "the trace does not tell what changed"
        )
    for error, count in driver.refused.items():
        notes.append(f"{count} members are refused with {error}, and do not come back")
    return EpochRun(events, figures(events, driver.course, sharing, asked.windows), tuple(notes))


def manner_of(plan: GroupPlan, settings: Settings) -> Manner:
    """Return how the members of a plan behave under the consumer protocol."""
    return Manner(
        group_id=plan.episode.group_id,
        broker_id=plan.episode.lines[0].broker_id or 0,
        assignor=settings.group_remote_assignor or SERVER_ASSIGNORS[0],
        session_timeout_ms=settings.group_consumer_session_timeout_ms
        or CONSUMER_SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms
        or CONSUMER_HEARTBEAT_INTERVAL_MS,
        rebalance_timeout_ms=settings.rebalance_timeout_ms or _REBALANCE_TIMEOUT_MS,
        busy_ms=Pace(plan).own_ms,
        max_size=settings.group_max_size or NEVER_MS,
    )
