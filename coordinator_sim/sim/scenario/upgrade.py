"""The deploys of an upgrade to the consumer protocol (KIP-848), each in a world of its own.

One group restarts all its members, one after the other, in an otherwise quiet world: as it always
did, going over to the consumer protocol, after that, and going back.
"""

from enum import Enum, unique
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.clients.config import CLASSIC, CONSUMER
from coordinator_sim.sim.scenario.checks import MAX_TIME_MS, within
from coordinator_sim.sim.scenario.happenings import rolling_bounce
from coordinator_sim.sim.scenario.scenario import Scenario, with_settings
from coordinator_sim.sim.scenario.settings import int_setting
from coordinator_sim.sim.scenario.topology import SETTLE_MS, Topology, shaped

_SESSION: Final = "session.timeout.ms"
_SESSION_MS: Final = 45_000
"""Kafka's default of a classic member's session, and of a broker's for the others."""
_PROTOCOL: Final = "group.protocol"


@unique
class Deploy(Enum):
    """A deploy of the group; the values name its scenario."""

    TODAY = "today"
    UPGRADE = "upgrade"
    AFTERWARDS = "afterwards"
    BACK = "back"

    @property
    def begins_as(self) -> str:
        """`group.protocol` of the members before it."""
        return CLASSIC if self in {Deploy.TODAY, Deploy.UPGRADE} else CONSUMER

    @property
    def ends_as(self) -> str:
        """`group.protocol` of the members after it."""
        return CLASSIC if self in {Deploy.TODAY, Deploy.BACK} else CONSUMER


class UpgradePlan(Struct, frozen=True, kw_only=True):
    """A group and how it is deployed.

    Args:
        group: The group; its restarts and its duration do not count.
        pace_ms: From one member's stop to the next member's.
        down_ms: Time without a process.
        classic: Settings of the members while they are classic ones.
        consumer: Settings of the members of the consumer protocol.
        broker: Settings of the brokers.
        profile: Kafka release of the brokers.
        today: Kafka release of the brokers of a usual deploy, as long as there is no upgrade.
    """

    group: Topology
    pace_ms: int
    down_ms: int
    classic: dict[str, str] = {}
    consumer: dict[str, str] = {}
    broker: dict[str, str] = {}
    profile: str
    today: str


def upgrade_worlds(plan: UpgradePlan) -> dict[Deploy, Scenario]:
    """Return the world of each deploy; it begins `SETTLE_MS` after the members started.

    The run ends when the longest wait is over that a restart may leave behind.

    Raises:
        ScenarioError: a number is outside its bounds.
        ConfigError: a setting is unknown, or the release of the brokers has no consumer protocol.
    """
    within("pace_ms of an upgrade", plan.pace_ms, 0, MAX_TIME_MS)
    within("down_ms of an upgrade", plan.down_ms, 0, MAX_TIME_MS)
    return {deploy: _world(plan, deploy) for deploy in Deploy}


def _world(plan: UpgradePlan, deploy: Deploy) -> Scenario:
    group = plan.group
    members = tuple(group.members)
    own = {CLASSIC: plan.classic, CONSUMER: plan.consumer}
    before = {_PROTOCOL: deploy.begins_as, **own[deploy.begins_as]}
    after = {_PROTOCOL: deploy.ends_as, **own[deploy.ends_as]}
    lasts_ms = (len(members) - 1) * plan.pace_ms + plan.down_ms
    session_ms = max(int_setting(each, _SESSION, _SESSION_MS) for each in own.values())
    restarts = rolling_bounce(
        members,
        first_at_ms=SETTLE_MS,
        every_ms=plan.pace_ms,
        down_ms=plan.down_ms,
        settings=after if deploy.begins_as != deploy.ends_as else {},
    )
    topology = msgspec.structs.replace(
        group,
        name=deploy.value,
        title=f"{group.group_id}: {_WORDS[deploy]}",
        story=f"{group.story} All members are restarted one after the other: {_WORDS[deploy]}.",
        restarts=(),
        duration_ms=SETTLE_MS + lasts_ms + session_ms + SETTLE_MS,
    )
    world = msgspec.structs.replace(
        shaped(topology), profile=plan.today if deploy is Deploy.TODAY else plan.profile
    )
    world = with_settings(world, {**plan.broker, **before})
    return msgspec.structs.replace(world, happenings=restarts)


_WORDS: Final = {
    Deploy.TODAY: "a usual deploy of the classic protocol",
    Deploy.UPGRADE: "the deploy that goes over to the consumer protocol",
    Deploy.AFTERWARDS: "a deploy of the consumer protocol",
    Deploy.BACK: "the deploy that goes back to the classic protocol",
}
