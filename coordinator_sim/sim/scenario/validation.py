"""Checks that a scenario describes a possible world, and that what happens in it can happen there.

Every message names the value, the bound and the fix.
"""

import re
from typing import Final

from msgspec import UNSET

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.clients.config import CLASSIC, CONSUMER
from coordinator_sim.clients.consumer_models import NEW_CLIENTS
from coordinator_sim.errors import INVALID_PATTERN, ConfigError, ScenarioError
from coordinator_sim.kafka.api_keys import GROUP_APIS, ApiKey
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.roles import ROLES
from coordinator_sim.sim.scenario import checks, happenings, world
from coordinator_sim.sim.scenario.fault_rules import check_rule
from coordinator_sim.sim.scenario.happenings import RestartMember, StartMember
from coordinator_sim.sim.scenario.kubernetes import check_workloads
from coordinator_sim.sim.scenario.load import check_load, check_shares
from coordinator_sim.sim.scenario.quantiles import check_table
from coordinator_sim.sim.scenario.settings import (
    CONNECT_PROTOCOLS,
    Scope,
    check_settings,
    int_setting,
    unknown_setting,
)
from coordinator_sim.sim.scenario.streams import check_streams
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.variety import check_variety
from coordinator_sim.sim.scenario.work import (
    SinkWork,
    check_commits,
    check_connector_work,
    check_processing,
)
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
MAX_SLOW_PERCENT: Final = 1_000_000
"""Ten thousand times as slow as usual: a downstream that stands still."""
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
OF_GROUPS: Final = ("READ", "DESCRIBE", "DELETE")
OF_TOPICS: Final = (*OF_GROUPS, "WRITE", "CREATE", "ALTER")
"""Operations on groups and on topics that may be denied."""
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
            | happenings.FaultRule()
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
    happening: (
        happenings.ClusterHappening
        | happenings.AdminHappening
        | happenings.SlowDownstream
        | happenings.WorkloadHappening
    ),
) -> None:
    if isinstance(happening, happenings.WorkloadHappening):
        _check_workload(scenario, happening)
        return
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
        case happenings.RollBrokers():
            _check_roll(scenario, happening)
        case happenings.SlowDownstream():
            _check_downstream(scenario, happening)
        case _:
            _check_admin_happening(scenario, happening)


def _check_admin_happening(
    scenario: UncheckedScenario, happening: happenings.AdminHappening
) -> None:
    match happening:
        case happenings.AddPartitions():
            checks.known("topic", happening.topic, scenario.partitions_by_topic)
            before = scenario.partitions_by_topic[happening.topic]
            checks.within(f"to of AddPartitions {happening.topic!r}", happening.to, before, 10**6)
        case happenings.CreateTopic():
            if happening.topic in scenario.partitions_by_topic and not any(
                isinstance(each, happenings.DeleteTopic)
                and each.topic == happening.topic
                and each.at_ms < happening.at_ms
                for each in scenario.happenings
            ):
                raise ScenarioError(
                    f"topic {happening.topic!r} is there from the start: rename it, or delete it "
                    "earlier with DeleteTopic"
                )
            checks.check_name_of_topic(happening.topic)
            name = f"partitions of CreateTopic {happening.topic!r}"
            checks.within(name, happening.partitions, 1, checks.MAX_PARTITIONS)
        case happenings.DeleteTopic():
            checks.known("topic", happening.topic, _topics_ever(scenario))
        case happenings.ChangeConfig():
            _check_config_change(scenario, happening)
        case happenings.DenyAccess():
            _check_denial(scenario, happening)


def _topics_ever(scenario: UncheckedScenario) -> list[str]:
    """The topics that are there from the start, and those that happenings create."""
    created = [e.topic for e in scenario.happenings if isinstance(e, happenings.CreateTopic)]
    return [*scenario.partitions_by_topic, *created]


def _check_resource(
    scenario: UncheckedScenario, happening: happenings.ChangeConfig | happenings.DenyAccess
) -> None:
    if happening.topic is not None:
        checks.known("topic", happening.topic, [*_topics_ever(scenario), OFFSETS_TOPIC])
    if happening.group_id is not None:
        checks.known("group", happening.group_id, scenario.known_groups)


def _check_config_change(scenario: UncheckedScenario, change: happenings.ChangeConfig) -> None:
    named = [each for each in (change.topic, change.broker, change.group_id) if each is not None]
    if len(named) != 1:
        raise ScenarioError("ChangeConfig needs one of topic, broker and group_id")
    if change.broker and change.broker not in map(str, range(1, scenario.brokers + 1)):
        raise ScenarioError(
            f"broker of ChangeConfig={change.broker!r}: use one from '1' to "
            f"'{scenario.brokers}', or '' for the default of all"
        )
    _check_resource(scenario, change)
    if not change.configs:
        raise ScenarioError("ChangeConfig without configs: name one with its value")


def _check_denial(scenario: UncheckedScenario, denial: happenings.DenyAccess) -> None:
    if (denial.topic is None) == (denial.group_id is None):
        raise ScenarioError("DenyAccess needs a topic or a group_id, and not both")
    operations = OF_TOPICS if denial.topic is not None else OF_GROUPS
    checks.known("operation", denial.operation, operations)
    _check_resource(scenario, denial)
    if denial.member is not None:
        _check_process(scenario, denial.member)
    checks.within("for_ms of DenyAccess", denial.for_ms, 1, checks.MAX_TIME_MS)


def _check_downstream(scenario: UncheckedScenario, happening: happenings.SlowDownstream) -> None:
    kinds = world.ConsumerGroupSpec, world.ShareGroupSpec
    consumers = [one.group_id for one in scenario.groups if isinstance(one, kinds)]
    checks.known("consumer group", happening.group_id, consumers)
    checks.within("percent of SlowDownstream", happening.percent, 1, MAX_SLOW_PERCENT)
    checks.within("for_ms of SlowDownstream", happening.for_ms, 1, checks.MAX_TIME_MS)


def _check_member(scenario: UncheckedScenario, member: str) -> None:
    checks.known("member", member, scenario.groups_by_member)


def _check_process(scenario: UncheckedScenario, name: str) -> None:
    checks.known("member", name, scenario.known_processes)


def _check_start(
    scenario: UncheckedScenario, happening: happenings.StartMember | happenings.RestartMember
) -> None:
    _check_member(scenario, happening.member)
    if scenario.kubernetes and happening.member in scenario.pods:
        raise ScenarioError(
            f"{type(happening).__name__} of {happening.member!r}: it is a pod, which Kubernetes "
            "starts; use RollOut, ScaleWorkload, EvictPod, StopMember or CrashMember"
        )
    for name in happening.settings:
        if name not in names_read_by(scenario.group_of(happening.member)):
            raise unknown_setting(name)


def _check_roll(scenario: UncheckedScenario, roll: happenings.RollBrokers) -> None:
    checks.within("down_ms of RollBrokers", roll.down_ms, 1, checks.MAX_TIME_MS)
    checks.within("readiness_ms of RollBrokers", roll.readiness_ms, 0, checks.MAX_TIME_MS)
    checks.within("controller of RollBrokers", roll.controller, 0, scenario.brokers)


def _check_workload(scenario: UncheckedScenario, happening: happenings.WorkloadHappening) -> None:
    if isinstance(happening, happenings.DrainNode):
        if not scenario.kubernetes:
            raise ScenarioError("DrainNode: no pod runs on a node; add a workload to `kubernetes`")
        checks.within("node of DrainNode", happening.node, 1, scenario.kubernetes_nodes)
        checks.within("for_ms of DrainNode", happening.for_ms, 1, checks.MAX_TIME_MS)
        checks.within("notice_ms of DrainNode", happening.notice_ms or 0, 0, happening.for_ms)
        return
    if isinstance(happening, happenings.EvictPod):
        checks.known("pod", happening.member, scenario.pods)
        return
    specs = {spec.name: spec for spec in scenario.kubernetes}
    checks.known("workload", happening.workload, specs)
    spec = specs[happening.workload]
    group = _group(scenario, spec.group_id)
    if isinstance(happening, happenings.ScaleWorkload):
        most = list(scenario.pods.values()).count(spec.name)
        checks.within("replicas of ScaleWorkload", happening.replicas, 0, most)
    else:
        for name in happening.settings:
            if name not in names_read_by(group):
                raise unknown_setting(name)


def _check_response(
    scenario: UncheckedScenario, happening: happenings.ResponseHappening | happenings.FaultRule
) -> None:
    if isinstance(happening, happenings.FaultRule):
        check_rule(scenario, happening)
        return
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
    group = scenario.group_of(happening.member)
    if not isinstance(group, ConsumerGroupSpec) or isinstance(group, world.StreamsGroupSpec):
        raise ScenarioError(
            f"{happening.member!r} of {group.group_id!r} is in no consumer group: only its members "
            "subscribe to other topics"
        )
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


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
MAX_BROKERS: Final = 1_000
"""More brokers than any cluster; node ids stay apart from coordinator connections."""
MAX_RECORDS: Final = 10_000_000_000
"""Records of an internal topic: counted, but fetched a MiB at a time."""
MAX_RECORD_BYTES: Final = 1_000_000
MIN_SEGMENT_BYTES: Final = 1 << 20
MAX_SEGMENT_BYTES: Final = (1 << 31) - 1
_MAX_SEGMENTS: Final = 10_000
"""Limit of about `max.message.bytes`."""


def check_scenario(scenario: UncheckedScenario) -> None:
    """Refuse a scenario with an impossible world.

    Raises:
        ScenarioError: names the value, the bound and the fix.
        ConfigError: the profile or a setting is unknown, or outside its bounds.
    """
    if not _NAME.fullmatch(scenario.name):
        raise ScenarioError(
            f"name {scenario.name!r}: must be 1 to 200 letters, digits, '.', '_' and '-', "
            "the first a letter or digit; it names the run's directory"
        )
    checks.within("duration_ms", scenario.duration_ms, 1, checks.MAX_TIME_MS)
    checks.within("brokers", scenario.brokers, 1, MAX_BROKERS)
    if (nodes := scenario.kubernetes_nodes) != 1:
        checks.within("kubernetes_nodes", nodes, 1, 5_000)  # Kubernetes' own limit.
    checks.within("load_ms", scenario.load_ms, 0, checks.MAX_TIME_MS)
    checks.within("failover_ms", scenario.failover_ms, 0, checks.MAX_TIME_MS)
    profile_named(scenario.profile)
    check_settings(Scope.BROKER, scenario.broker_settings)
    _check_latency("network.latency", scenario.network.latency)
    if scenario.variety is not None:
        check_variety(scenario.variety)
        _check_latency("variety.latency", scenario.variety.latency)
    _check_topics(scenario)
    _check_groups(scenario)
    _check_workloads(scenario)
    if scenario.kubernetes:
        check_workloads(scenario.kubernetes, scenario.groups)
    for happening in scenario.happenings:
        check_happening(scenario, happening)
        if isinstance(happening, StartMember | RestartMember) and happening.settings:
            # A group of this member alone, with these settings, is checked like any other.
            group = _alone(scenario, happening.member)
            changed = (
                world.with_new_configuration(group, happening.settings)
                if isinstance(group, world.ConsumerGroupSpec)
                else world.with_member_settings(group, happening.settings)
            )
            _check_group(scenario, changed)
        elif isinstance(happening, happenings.RollOut):
            spec = next(each for each in scenario.kubernetes if each.name == happening.workload)
            group = _group(scenario, spec.group_id)
            _check_group(scenario, world.with_member_settings(group, happening.settings))


def _alone(scenario: UncheckedScenario, name: str) -> world.GroupSpec:
    """The group of a member, without the others."""
    group, spec = scenario.group_of(name), scenario.members_by_name[name]
    return world.with_members(group, (spec,))


def _check_latency(name: str, latency: world.LatencyLaw) -> None:
    match latency:
        case world.ConstantLatency(us=us):
            checks.within(f"{name}.us", us, 0, checks.MAX_TIME_MS)
        case world.UniformLatency(low_us=low_us, high_us=high_us):
            checks.within(f"{name}.low_us", low_us, 0, checks.MAX_TIME_MS)
            checks.within(f"{name}.high_us", high_us, low_us, checks.MAX_TIME_MS)
        case world.TableLatency(quantiles_us=quantiles):
            check_table(f"{name}.quantiles_us", quantiles, 0, checks.MAX_TIME_MS)


def _check_topics(scenario: UncheckedScenario) -> None:
    checks.unique("topic", [topic.name for topic in scenario.topics])
    for topic in scenario.topics:
        checks.check_name_of_topic(topic.name)
        checks.within(
            f"partitions of topic {topic.name!r}", topic.partitions, 1, checks.MAX_PARTITIONS
        )
        checks.within(f"records_per_s of topic {topic.name!r}", topic.records_per_s, 0, 10**9)
        if topic.load or topic.keys or topic.poison:
            _check_load(scenario, topic)
    if scenario.objective_lag_ms is not UNSET:
        checks.within("objective_lag_ms", scenario.objective_lag_ms, 1, checks.MAX_TIME_MS)


def _check_load(scenario: UncheckedScenario, topic: world.TopicSpec) -> None:
    where = f"topic {topic.name!r}"
    if topic.load:
        check_load(topic.name, topic.load)
        if topic.records_per_s != world.DEFAULT_RECORDS_PER_S:
            raise ScenarioError(
                f"{where} has records_per_s={topic.records_per_s} and a load: leave out one of them"
            )
    elif topic.keys:
        raise ScenarioError(f"{where} has keys and no load: give the load that they share")
    added = [e for e in scenario.happenings if isinstance(e, happenings.AddPartitions)]
    most = max([topic.partitions, *(each.to for each in added if each.topic == topic.name)])
    check_shares(
        topic.name, topic.keys or None, topic.poison or None, first=topic.partitions, most=most
    )


def _check_groups(scenario: UncheckedScenario) -> None:
    checks.unique("group", [group.group_id for group in scenario.groups])
    checks.unique("member", [member.name for member in scenario.members()])
    for group in scenario.groups:
        for member in world.members_of(group):
            if member.start_ms is not None:
                checks.within(
                    f"start_ms of {member.name!r}", member.start_ms, 0, checks.MAX_TIME_MS
                )
        _check_group(scenario, group)


def _check_workloads(scenario: UncheckedScenario) -> None:
    checks.unique("process", scenario.processes())
    for task in scenario.workloads:
        checks.within(f"startMs of task {task.id!r}", task.parsed.start_ms, 0, scenario.duration_ms)


def _check_group(scenario: UncheckedScenario, group: world.GroupSpec) -> None:
    match group:
        case world.StreamsGroupSpec():
            check_streams(scenario, group)
        case world.ConsumerGroupSpec():
            _check_consumers(scenario, group)
        case world.ShareGroupSpec():
            checks.check_share_group(scenario, group)
        case world.ConnectGroupSpec():
            _check_connect(group)
            _check_internal_topics(group)
            _check_work(scenario, group)


def _check_consumers(scenario: UncheckedScenario, group: world.ConsumerGroupSpec) -> None:
    topics = scenario.partitions_by_topic
    if not group.assignors:
        raise ConfigError(
            f"group {group.group_id!r} has no assignor: name one of {', '.join(CONSUMER_ASSIGNORS)}"
        )
    for assignor in group.assignors:
        if assignor not in CONSUMER_ASSIGNORS:
            raise ConfigError(
                f"unknown assignor {assignor!r}: use one of {', '.join(CONSUMER_ASSIGNORS)}; your "
                "own is made known by --assignor-from or --assignor-process"
            )
        if group.assignors.count(assignor) > 1:
            raise ConfigError(
                f"group {group.group_id!r} has the assignor {assignor!r} twice: remove one"
            )
    check_settings(Scope.CONSUMER, group.settings)
    for topic in group.topics:
        checks.known("topic", topic, topics)
    _check_pattern(group)
    instances = [m.instance_id for m in group.members if m.instance_id is not None]
    checks.unique(f"instance id of group {group.group_id!r}", instances)
    for member in group.members:
        check_settings(Scope.CONSUMER, {**group.settings, **member.settings})
        checks.within(
            f"processing_ms of {member.name!r}", member.processing_ms, 0, checks.MAX_TIME_MS
        )
        checks.within(f"callback_ms of {member.name!r}", member.callback_ms, 0, checks.MAX_TIME_MS)
        check_commits(member.name, member.commits)
        if member.processing is not None:
            check_processing(member.name, member.processing)
        for topic in member.topics or ():
            checks.known("topic", topic, topics)
    _check_new_members(scenario, group)
    _check_librdkafka(group)


def _check_new_members(scenario: UncheckedScenario, group: world.ConsumerGroupSpec) -> None:
    """Refuse members of the consumer protocol where brokers or clients cannot do it."""
    for member in group.members:
        if not _is_new(group, member):
            continue
        if not profile_named(scenario.profile).has_coordinator_runtime:
            raise ScenarioError(
                f"{member.name!r} has group.protocol={CONSUMER}: brokers of profile "
                f"{scenario.profile!r} have no such groups; use profile 4.0 or a later one"
            )
        if member.client not in NEW_CLIENTS:
            raise ScenarioError(
                f"{member.name!r} has group.protocol={CONSUMER}: client {member.client!r} is "
                f"modelled with the classic protocol alone; use {' or '.join(NEW_CLIENTS)}"
            )


def _is_new(group: world.ConsumerGroupSpec, member: world.ConsumerSpec) -> bool:
    """Whether a member speaks the consumer protocol."""
    settings = {**group.settings, **member.settings}
    return settings.get("group.protocol", CLASSIC) != CLASSIC


def _check_pattern(group: world.ConsumerGroupSpec) -> None:
    if group.pattern is None:
        return
    if group.topics or any(member.topics for member in group.members):
        raise ScenarioError(f"group {group.group_id!r} has topics and a pattern: give one of them")
    for member in group.members:
        is_read = member.client == "java" or _is_new(group, member)
        if not is_read:
            raise ScenarioError(
                f"pattern of group {group.group_id!r}: {member.client} consumers have one with "
                f"group.protocol={CONSUMER} alone; use client 'java'"
            )
    try:
        re.compile(group.pattern)
    except INVALID_PATTERN as error:
        raise ScenarioError(f"pattern {group.pattern!r}: {error}") from error


def _check_librdkafka(group: world.ConsumerGroupSpec) -> None:
    """Refuse assignors that librdkafka lacks, or does not allow together.

    Source: librdkafka 2.15, rdkafka_assignor.c, rd_kafka_assignors_init.
    """
    if not any(m.client == "librdkafka" and not _is_new(group, m) for m in group.members):
        return
    names = ", ".join(group.assignors)
    if "sticky" in group.assignors:
        raise ScenarioError(
            f"assignors of group {group.group_id!r}: {names}; librdkafka has no `sticky`: "
            "use range, roundrobin or cooperative-sticky"
        )
    if "cooperative-sticky" in group.assignors and len(group.assignors) > 1:
        raise ScenarioError(
            f"assignors of group {group.group_id!r}: {names}; librdkafka takes "
            "cooperative-sticky alone, or none of it"
        )


def _check_connect(group: world.ConnectGroupSpec) -> None:
    if group.connect_protocol not in CONNECT_PROTOCOLS:
        raise ConfigError(
            f"connect.protocol={group.connect_protocol}: "
            f"must be one of {', '.join(CONNECT_PROTOCOLS)}"
        )
    check_settings(Scope.CONNECT, group.settings)
    for worker in group.workers:
        check_settings(Scope.CONNECT, {**group.settings, **worker.settings})
    for connector, tasks in group.connectors.items():
        checks.within(f"tasks of connector {connector!r}", tasks, 0, checks.MAX_PARTITIONS)


def _check_history(topics: world.InternalTopicsSpec, history: world.OffsetHistory) -> None:
    where = "internal_topics.offset_history"
    if topics.offset_records or topics.offset_end is not None or not topics.exist:
        raise ScenarioError(
            f"{where} stands beside offset_records or offset_end, or beside exist=false: "
            "say how many records there are, or how they came to be"
        )
    checks.within(f"{where}.source_partitions", history.source_partitions, 1, MAX_RECORDS)
    checks.within(f"{where}.written_ms", history.written_ms, 0, checks.MAX_TIME_MS)
    checks.within(f"{where}.commit_every_ms", history.commit_every_ms, 1, checks.MAX_TIME_MS)
    checks.within(f"{where}.segment_ms", history.segment_ms, 1, checks.MAX_TIME_MS)
    checks.within(
        f"{where}.segment_bytes", history.segment_bytes, MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES
    )
    written = history.source_partitions * (history.written_ms // history.commit_every_ms)
    checks.within(f"records written by {where}", written, 0, MAX_RECORDS)
    by_size = written * (topics.offset_record_bytes + 1) // history.segment_bytes
    by_time = history.written_ms // max(history.segment_ms, history.commit_every_ms)
    checks.within(f"segments written by {where}", by_size + by_time, 0, _MAX_SEGMENTS)
    if not 0 <= history.min_cleanable_dirty_ratio <= 1:
        raise ScenarioError(
            f"{where}.min_cleanable_dirty_ratio={history.min_cleanable_dirty_ratio}: "
            "must be from 0 to 1"
        )


def _check_internal_topics(group: world.ConnectGroupSpec) -> None:
    topics = group.internal_topics
    for name in ("offset_partitions", "status_partitions"):
        checks.within(f"internal_topics.{name}", getattr(topics, name), 1, checks.MAX_PARTITIONS)
    for name in ("offset", "status", "config"):
        records = getattr(topics, f"{name}_records")
        checks.within(f"internal_topics.{name}_records", records, 0, MAX_RECORDS)
        size = getattr(topics, f"{name}_record_bytes")
        checks.within(f"internal_topics.{name}_record_bytes", size, 0, MAX_RECORD_BYTES)
        if records and not topics.exist:
            raise ScenarioError(
                f"internal_topics.{name}_records={records}: topics that do not exist have none"
            )
    if topics.compact_every_ms is not None:
        checks.within(
            "internal_topics.compact_every_ms", topics.compact_every_ms, 1, checks.MAX_TIME_MS
        )
    if topics.offset_history is not None:
        _check_history(topics, topics.offset_history)
    if topics.offset_end is not None:
        low = topics.offset_records
        checks.within("internal_topics.offset_end", topics.offset_end, low, MAX_RECORDS)
    if group.connectors and not topics.exist:
        raise ScenarioError(
            f"connectors of {group.group_id!r}: topics that do not exist hold none; add them with "
            "AddConnector once a worker has created the topics"
        )
    costs = topics.costs
    for name in costs.__struct_fields__:
        low = 1 if name.endswith(("bytes", "bytes_per_s")) else 0
        checks.within(f"internal_topics.costs.{name}", getattr(costs, name), low, 10**15)


def _check_work(scenario: UncheckedScenario, group: world.ConnectGroupSpec) -> None:
    topics = scenario.partitions_by_topic
    for connector, work in group.work.items():
        checks.known(
            "connector", connector, [*group.connectors, *checks.added_connectors(scenario, group)]
        )
        check_connector_work(connector, work)
        for topic in work.topics if isinstance(work, SinkWork) else (work.topic,):
            checks.known("topic", topic, topics)
