"""`UncheckedScenario`: what is written in a scenario, and the questions that it answers at once."""

from msgspec import Struct

from coordinator_sim.errors import ScenarioError
from coordinator_sim.kafka.releases import RELEASES
from coordinator_sim.sim.scenario.happenings import Happening, end_of
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.world import (
    GroupSpec,
    MemberSpec,
    NetworkSpec,
    TopicSpec,
    describes_work,
    members_of,
)


class UncheckedScenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A world and its happenings as they are written down, possible or not.

    Args:
        name: Short name, as typed on the command line.
        title: One line for tables.
        story: What happens and what to look at, a few sentences.
        duration_ms: Virtual time at which the run ends.
        brokers: Number of brokers; their ids are 1 to `brokers`.
        profile: Kafka version whose behaviour the brokers show.
        broker_settings: Settings by Kafka's names.
        load_ms: Time a broker takes to load an offsets partition it has become leader of.
        failover_ms: Time from a broker's death to the election of new leaders.
        traces_work: Whether the trace records which records each application processed.
        happenings: Happenings in any order of time; those of one instant happen in this order.
        variety: Distributions to draw from for each run, by its seed. None makes the exact world:
            all events at their written instants, small, reproducible and in lockstep; its times
            show the order of events, not the costs of a cluster.
    """

    name: str
    title: str
    story: str
    duration_ms: int
    topics: tuple[TopicSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    happenings: tuple[Happening, ...] = ()
    brokers: int = 3
    profile: str = RELEASES[-1]
    broker_settings: dict[str, str] = {}
    network: NetworkSpec = NetworkSpec()
    load_ms: int = 50
    failover_ms: int = 1_000
    traces_work: bool = False
    variety: Variety | None = None

    def members(self) -> tuple[MemberSpec, ...]:
        """Return every consumer and worker, group by group."""
        return tuple(member for group in self.groups for member in members_of(group))

    def counts_work(self) -> bool:
        """Whether the trace records processed records: on request, or where work is described."""
        return self.traces_work or any(describes_work(group) for group in self.groups)

    def group_of(self, member: str) -> GroupSpec:
        """Return the group of the member of that name.

        Raises:
            ScenarioError: no group has such a member.
        """
        for group in self.groups:
            if any(spec.name == member for spec in members_of(group)):
                return group
        raise ScenarioError(f"unknown member {member!r} in scenario {self.name!r}")

    def calm_from_ms(self) -> int:
        """Return the instant of the last change to the world."""
        starts = [spec.start_ms for spec in self.members() if spec.start_ms is not None]
        return max([0, *starts, *(end_of(happening) for happening in self.happenings)])
