"""Checks that what happens in a scenario can happen in its world.

Every message names the value, the bound and the fix.
"""

from typing import Final

from coordinator_sim.errors import ScenarioError
from coordinator_sim.kafka.api_keys import GROUP_APIS, ApiKey
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.roles import ROLES
from coordinator_sim.sim.scenario import checks, happenings
from coordinator_sim.sim.scenario.settings import int_setting, unknown_setting
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.world import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    GroupSpec,
    names_read_by,
)

REST_METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
"""Methods of requests to a worker."""
MAX_SKEW_MS: Final = 366 * 24 * 3_600_000
"""A year: more than a clock is wrong before somebody notices."""
MAX_DRIFT_PPM: Final = 500_000
"""Half or one and a half times the true speed; real oscillators keep within some hundred."""
_APIS_OF_ROLES: Final = ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "OFFSET_COMMIT")
"""Requests that a member sends as one, and is still one when they are answered."""
_APIS_OF_WORKERS: Final = ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP")
"""Requests that a worker sends as a member alone; others its admin clients send too."""
_APIS_OF_MEMBERS: Final = (
    *_APIS_OF_WORKERS,
    "CONSUMER_GROUP_HEARTBEAT",
    "OFFSET_COMMIT",
    "OFFSET_FETCH",
    "FIND_COORDINATOR",
    "METADATA",
)
"""Requests of a consumer."""
DEFAULT_OFFSETS_PARTITIONS: Final = 50
"""Default of `offsets.topic.num.partitions`."""


def check_happening(scenario: UncheckedScenario, happening: happenings.Happening) -> None:
    """Refuse a happening that the scenario's world cannot have.

    Raises:
        ScenarioError: names the value, the bound and the fix.
        ConfigError: a setting is unknown.
    """
    kind = type(happening).__name__
    checks.within(f"at_ms of {kind}", happening.at_ms, 0, scenario.duration_ms)
    match happening:
        case happenings.StopMember() | happenings.CrashMember():
            _check_member(scenario, happening.member)
        case happenings.StartMember():
            _check_start(scenario, happening)
        case happenings.RestartMember():
            _check_start(scenario, happening)
            checks.within(f"down_ms of {kind}", happening.down_ms, 0, checks.MAX_TIME_MS)
        case happenings.PauseMember() | happenings.SlowPoll():
            is_slow = isinstance(happening, happenings.SlowPoll)
            (_check_member if is_slow else _check_process)(scenario, happening.member)
            checks.within(f"for_ms of {kind}", happening.for_ms, 1, checks.MAX_TIME_MS)
        case happenings.SetClock():
            _check_clock(scenario, happening)
        case (
            happenings.DropResponse()
            | happenings.DelayResponse()
            | happenings.DuplicateResponse()
            | happenings.ReorderResponses()
        ):
            _check_response(scenario, happening)
        case happenings.LagConfigTopic() | happenings.RestRequest():
            _check_worker(scenario, happening)
        case happenings.ChangeSubscription():
            _check_subscription(scenario, happening)
        case (
            happenings.AddConnector()
            | happenings.RemoveConnector()
            | happenings.ChangeTaskCount()
            | happenings.FailWork()
        ):
            _check_connector(scenario, happening)
        case _:
            _check_world_happening(scenario, happening)


def _check_world_happening(
    scenario: UncheckedScenario,
    happening: happenings.ClusterHappening,
) -> None:
    match happening:
        case happenings.PartitionNetwork():
            _check_cut(scenario, happening)
        case happenings.DegradeNetwork():
            _check_degradation(scenario, happening)
        case happenings.MoveCoordinator():
            _check_move(scenario, happening)
        case happenings.HoldReplication():
            _check_offsets_partition(scenario, happening)
            checks.within("for_ms of HoldReplication", happening.for_ms, 1, checks.MAX_TIME_MS)
        case happenings.PauseBroker() | happenings.CrashBroker() | happenings.FailOffsetsReads():
            kind = type(happening).__name__
            checks.within(f"broker of {kind}", happening.broker, 1, scenario.brokers)
            checks.within(f"for_ms of {kind}", happening.for_ms, 1, checks.MAX_TIME_MS)
            if isinstance(happening, happenings.FailOffsetsReads):
                _check_prefix(scenario, happening.prefix)
        case happenings.AddPartitions():
            checks.known("topic", happening.topic, scenario.partitions_by_topic)
            before = scenario.partitions_by_topic[happening.topic]
            checks.within(f"to of AddPartitions {happening.topic!r}", happening.to, before, 10**6)
        case happenings.CreateTopic():
            if happening.topic in scenario.partitions_by_topic:
                raise ScenarioError(f"topic {happening.topic!r} is there from the start: rename it")
            checks.check_name_of_topic(happening.topic)
            name = f"partitions of CreateTopic {happening.topic!r}"
            checks.within(name, happening.partitions, 1, checks.MAX_PARTITIONS)


def _check_member(scenario: UncheckedScenario, member: str) -> None:
    checks.known("member", member, scenario.groups_by_member)


def _check_process(scenario: UncheckedScenario, name: str) -> None:
    checks.known("member", name, scenario.known_processes)


def _check_start(
    scenario: UncheckedScenario, happening: happenings.StartMember | happenings.RestartMember
) -> None:
    _check_member(scenario, happening.member)
    for name in happening.settings:
        if name not in names_read_by(scenario.group_of(happening.member)):
            raise unknown_setting(name)


def _check_response(scenario: UncheckedScenario, happening: happenings.ResponseHappening) -> None:
    kind = type(happening).__name__
    if happening.member is not None:
        _check_member(scenario, happening.member)
        if happening.group_id is not None or happening.role is not None:
            raise ScenarioError(f"{kind} has a member: leave out group_id and role, or the member")
    elif happening.group_id is None or happening.role is None:
        raise ScenarioError(f"{kind} needs a member, or a group_id and a role of {'/'.join(ROLES)}")
    else:
        checks.known("group", happening.group_id, scenario.known_groups)
        if happening.role not in ROLES:
            raise ScenarioError(f"role of {kind}={happening.role!r}: use {' or '.join(ROLES)}")
    checks.within(f"count of {kind}", happening.count, 1, checks.MAX_PARTITIONS)
    spoken = GROUP_APIS | {ApiKey.CONSUMER_GROUP_HEARTBEAT}
    checks.known("api", happening.api, [api.name for api in ApiKey if api in spoken])
    if happening.role is not None and happening.api not in _APIS_OF_ROLES:
        raise ScenarioError(
            f"api of {kind}={happening.api!r}: nobody has a role when it is answered; use one of "
            f"{', '.join(_APIS_OF_ROLES)}, or a member"
        )
    if isinstance(happening, happenings.DelayResponse):
        checks.within("by_ms of DelayResponse", happening.by_ms, 1, checks.MAX_TIME_MS)
    if isinstance(happening, happenings.ReorderResponses):
        checks.within("within_ms of ReorderResponses", happening.within_ms, 1, checks.MAX_TIME_MS)
    if isinstance(happening, happenings.DuplicateResponse | happenings.ReorderResponses):
        _check_api_of_member(scenario, happening)


def _check_api_of_member(
    scenario: UncheckedScenario,
    happening: happenings.DuplicateResponse | happenings.ReorderResponses,
) -> None:
    """Refuse responses to clients that the simulator does not model so far: a worker's others."""
    kind, member = type(happening).__name__, happening.member
    apis: tuple[str, ...] = _APIS_OF_MEMBERS
    if member is not None and isinstance(scenario.group_of(member), ConnectGroupSpec):
        apis = _APIS_OF_WORKERS
    if happening.api not in apis:
        raise ScenarioError(
            f"api of {kind}={happening.api!r}: use one of {', '.join(apis)}, which only the "
            "membership itself asks for"
        )


def _check_one_end(
    scenario: UncheckedScenario, happening: happenings.SetClock | happenings.DegradeNetwork
) -> None:
    if (happening.member is None) == (happening.broker is None):
        kind = type(happening).__name__
        raise ScenarioError(f"{kind} needs a member or a broker, and not both")
    _check_ends(scenario, happening)


def _check_ends(
    scenario: UncheckedScenario,
    happening: happenings.SetClock | happenings.DegradeNetwork | happenings.PartitionNetwork,
) -> None:
    if happening.member is not None:
        _check_process(scenario, happening.member)
    if happening.broker is not None:
        checks.within(
            f"broker of {type(happening).__name__}", happening.broker, 1, scenario.brokers
        )


def _check_clock(scenario: UncheckedScenario, happening: happenings.SetClock) -> None:
    _check_one_end(scenario, happening)
    checks.within("skew_ms of SetClock", happening.skew_ms, -MAX_SKEW_MS, MAX_SKEW_MS)
    if happening.at_ms + happening.skew_ms < 0:
        raise ScenarioError(
            f"skew_ms of SetClock={happening.skew_ms} at {happening.at_ms} ms: a clock shows "
            f"nothing before the run's start; use {-happening.at_ms} or more"
        )
    checks.within("drift_ppm of SetClock", happening.drift_ppm, -MAX_DRIFT_PPM, MAX_DRIFT_PPM)


def _check_worker(
    scenario: UncheckedScenario, happening: happenings.LagConfigTopic | happenings.RestRequest
) -> None:
    _check_member(scenario, happening.member)
    is_worker = isinstance(scenario.group_of(happening.member), ConnectGroupSpec)
    if isinstance(happening, happenings.LagConfigTopic):
        if not is_worker:
            raise ScenarioError(
                f"{happening.member!r} is a consumer: only Connect workers read a config topic"
            )
        checks.within("for_ms of LagConfigTopic", happening.for_ms, 1, checks.MAX_TIME_MS)
        return
    if not is_worker:
        raise ScenarioError(f"{happening.member!r} is a consumer: only Connect workers serve REST")
    checks.known("method", happening.method, list(REST_METHODS))
    if not happening.target.startswith("/"):
        raise ScenarioError(f"target of RestRequest={happening.target!r}: must begin with /")


def _group(scenario: UncheckedScenario, group_id: str) -> GroupSpec:
    checks.known("group", group_id, [group.group_id for group in scenario.groups])
    return next(group for group in scenario.groups if group.group_id == group_id)


def _check_subscription(
    scenario: UncheckedScenario, happening: happenings.ChangeSubscription
) -> None:
    _check_member(scenario, happening.member)
    if not isinstance(scenario.group_of(happening.member), ConsumerGroupSpec):
        raise ScenarioError(f"{happening.member!r} is a Connect worker: only consumers subscribe")
    if not happening.topics:
        raise ScenarioError("ChangeSubscription without topics: name one, or stop the member")
    for topic in happening.topics:
        checks.known("topic", topic, [spec.name for spec in scenario.topics])


def _check_connector(scenario: UncheckedScenario, happening: happenings.ConnectorHappening) -> None:
    group = _group(scenario, happening.group_id)
    if not isinstance(group, ConnectGroupSpec):
        raise ScenarioError(f"group {group.group_id!r} is no Connect cluster: it has no connectors")
    added = checks.added_connectors(scenario, group)
    if isinstance(happening, happenings.AddConnector):
        if happening.connector in group.connectors:
            raise ScenarioError(
                f"connector {happening.connector!r} exists from the start: use ChangeTaskCount"
            )
    else:
        checks.known("connector", happening.connector, [*group.connectors, *added])
    if isinstance(happening, happenings.FailWork):
        checks.within(
            f"task of {happening.connector!r}", happening.task or 0, 0, checks.MAX_PARTITIONS
        )
    elif not isinstance(happening, happenings.RemoveConnector):
        checks.within(
            f"tasks of {happening.connector!r}", happening.tasks, 0, checks.MAX_PARTITIONS
        )


def _check_cut(scenario: UncheckedScenario, happening: happenings.PartitionNetwork) -> None:
    if happening.member is None and happening.broker is None:
        raise ScenarioError("PartitionNetwork names neither member nor broker: give one")
    _check_ends(scenario, happening)
    checks.within("for_ms of PartitionNetwork", happening.for_ms, 1, checks.MAX_TIME_MS)


def _check_degradation(scenario: UncheckedScenario, happening: happenings.DegradeNetwork) -> None:
    _check_one_end(scenario, happening)
    checks.within("latency_ms of DegradeNetwork", happening.latency_ms, 1, checks.MAX_TIME_MS)
    checks.within("for_ms of DegradeNetwork", happening.for_ms, 1, checks.MAX_TIME_MS)


def _check_prefix(scenario: UncheckedScenario, prefix: str) -> None:
    if not prefix.startswith(OFFSETS_TOPIC):
        raise ScenarioError(
            f"prefix of FailOffsetsReads={prefix!r}: must begin with {OFFSETS_TOPIC}, as reads of "
            "other files are not simulated"
        )
    count = _offsets_partitions(scenario)
    if not any(f"{OFFSETS_TOPIC}-{each}".startswith(prefix) for each in range(count)):
        raise ScenarioError(
            f"prefix of FailOffsetsReads={prefix!r}: no folder has such a name; they are "
            f"{OFFSETS_TOPIC}-0 to {OFFSETS_TOPIC}-{count - 1}"
        )


def _offsets_partitions(scenario: UncheckedScenario) -> int:
    return int_setting(
        scenario.broker_settings, "offsets.topic.num.partitions", DEFAULT_OFFSETS_PARTITIONS
    )


def _check_move(scenario: UncheckedScenario, happening: happenings.MoveCoordinator) -> None:
    _check_offsets_partition(scenario, happening)
    if happening.to_broker is not None:
        checks.within("to_broker of MoveCoordinator", happening.to_broker, 1, scenario.brokers)


def _check_offsets_partition(
    scenario: UncheckedScenario, happening: happenings.MoveCoordinator | happenings.HoldReplication
) -> None:
    kind = type(happening).__name__
    if (happening.group_id is None) == (happening.partition is None):
        raise ScenarioError(f"{kind} needs a group_id or a partition, and not both")
    if happening.group_id is not None:
        checks.known("group", happening.group_id, scenario.known_groups)
    if happening.partition is not None:
        last = _offsets_partitions(scenario) - 1
        checks.within(f"partition of {kind}", happening.partition, 0, last)
