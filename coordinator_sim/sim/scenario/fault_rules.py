"""Checks that a fault rule of a scenario can match some request in its world."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from coordinator_sim.broker.faults.fault_checks import check_fits
from coordinator_sim.broker.faults.faults import Match, api_named, check_fault
from coordinator_sim.clients.consumer_models import api_versions_of
from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.sim.scenario.happenings import AddConnector, ChangeTaskCount, FaultRule
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.work import SinkWork
from coordinator_sim.sim.scenario.world import ConnectGroupSpec, ConsumerSpec

API_VERSIONS: Final = {
    ApiKey.METADATA: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.FIND_COORDINATOR: 6,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.SHARE_GROUP_HEARTBEAT: 1,
    ApiKey.SHARE_FETCH: 2,
    ApiKey.SHARE_ACKNOWLEDGE: 2,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 1,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.OFFSET_DELETE: 0,
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.LIST_OFFSETS: 10,
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.DESCRIBE_CLUSTER: 2,
    ApiKey.DESCRIBE_CONFIGS: 4,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.END_TXN: 5,
}
"""Versions that a current client and a current broker agree on; topics go by their names.

Source: kafka trunk, clients/src/main/resources/common/message/*.json.
"""
_WILD: Final = frozenset("*?[")


def check_rule(scenario: UncheckedScenario, happening: FaultRule) -> None:
    """Refuse a rule that no request of the simulator's clients can match, or with unknown names.

    Raises:
        ScenarioError: names the field, why it matches nothing, and what would match.
    """
    rule, match = happening.rule, happening.rule.match
    try:
        check_fault(rule)
        _check_sent(match.api)
        check_fits(rule, _versions(scenario), range(1, scenario.brokers + 1))
    except ConfigError as error:
        raise ScenarioError(f"FaultRule at {happening.at_ms} ms: {error}") from None
    _check_names(scenario, match)


def _check_sent(name: str | None) -> None:
    if name is not None and api_named(name) not in API_VERSIONS:
        known = ", ".join(api.name for api in API_VERSIONS)
        raise ConfigError(f"api {name}: no client here sends it; they send {known}")


def _versions(scenario: UncheckedScenario) -> dict[ApiKey, tuple[int, int]]:
    """The lowest and the highest version of each API that the scenario's clients send."""
    specs = [each for each in scenario.members() if isinstance(each, ConsumerSpec)]
    models = [api_versions_of(name) for name in dict.fromkeys(each.client for each in specs)]
    return {
        api: (min([newest, *(own[api] for own in models if api in own)]), newest)
        for api, newest in API_VERSIONS.items()
    }


def _sinks(scenario: UncheckedScenario) -> Iterator[tuple[str, int]]:
    """Each sink connector, whose tasks are a group of consumers, and the most tasks that it has."""
    changes = [e for e in scenario.happenings if isinstance(e, AddConnector | ChangeTaskCount)]
    for group in scenario.groups:
        if not isinstance(group, ConnectGroupSpec):
            continue
        for name, work in group.work.items():
            if isinstance(work, SinkWork):
                later = [each.tasks for each in changes if each.connector == name]
                yield name, max([group.connectors.get(name, 0), *later])


def _check_names(scenario: UncheckedScenario, match: Match) -> None:
    """Refuse names that nobody in the scenario has."""
    if match.connection is not None:
        raise ScenarioError(
            f"connection {match.connection} of FaultRule: numbers differ from run to run; use "
            "client_id, and broker"
        )
    member = match.member
    instances = [getattr(each, "instance_id", None) for each in scenario.members()]
    if member is not None and not _WILD.intersection(member) and member not in instances:
        raise ScenarioError(
            f"member {member!r} of FaultRule: no group.instance.id is that, and member ids are "
            "drawn; use client_id for a member by name"
        )
    sinks = list(_sinks(scenario))
    consumers = [f"connector-consumer-{name}-{task}" for name, n in sinks for task in range(n)]
    groups = [*sorted(scenario.known_groups), *(f"connect-{name}" for name, _ in sinks)]
    for field, pattern, names in (
        ("client_id", match.client_id, [*sorted(scenario.known_processes), *consumers]),
        ("group", match.group, groups),
    ):
        if pattern is not None and not any(fnmatchcase(name, pattern) for name in names):
            raise ScenarioError(
                f"{field} {pattern!r} of FaultRule matches nobody: the scenario has "
                f"{', '.join(names[:20]) or 'none'}"
            )
