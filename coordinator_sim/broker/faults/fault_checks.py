"""Checks that a fault rule can match some request of a cluster, by the fields of its APIs."""

from collections.abc import Collection
from typing import Final

from coordinator_sim.broker.faults import faults
from coordinator_sim.broker.offered import Ranges
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.roles import COORDINATOR
from coordinator_sim.messages.catalogue import layout_of
from coordinator_sim.messages.schema import Layout

_Spoken = list[tuple[ApiKey, int]]
"""Pairs of an API and one of its versions."""
_GROUP_FIELDS: Final = frozenset({"groupId", "groupIds", "groups", "groupsNames"})
_MEMBER_FIELDS: Final = frozenset({"memberId", "groupInstanceId"})
_WAITING_APPENDS: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.OFFSET_COMMIT,
        ApiKey.JOIN_GROUP,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
    }
)
"""Requests that may append to a log whose replicas are waited for."""
_APPENDS: Final = _WAITING_APPENDS | {
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
}
"""Requests that may append to a log, also to the one of transactions."""
_OF_OTHER_GROUPS: Final = frozenset(
    api for api in ApiKey if api.name.startswith(("CONSUMER_GROUP", "SHARE_", "STREAMS_"))
)
"""APIs of groups whose members have no roles."""
_ERROR_FIELDS: Final = frozenset({"errorCode", "partitionErrorCode"})


def check_fits(fault: faults.Fault, ranges: Ranges, broker_ids: Collection[int]) -> None:
    """Refuse a rule that no request can match, or whose error no matching response can carry.

    Args:
        fault: A rule that `check_fault` accepted.
        ranges: APIs and versions that the cluster offers.
        broker_ids: Ids of the cluster's brokers.

    Raises:
        ConfigError: the rule cannot match; the message says why and what would match.
    """
    match, action = fault.match, fault.action
    named = [match.broker]
    if isinstance(action, faults.MoveCoordinator):
        named.append(action.to)
    for broker_id in named:
        if broker_id is not None and broker_id not in broker_ids:
            known = ", ".join(map(str, broker_ids))
            raise ConfigError(f"broker {broker_id}: there is none; the brokers are {known}")
    spoken = _of_versions(match, ranges)
    what = "any request" if match.api is None else match.api
    if match.group is not None:
        spoken = [each for each in spoken if _names_group(*each)]
        _require(spoken, f"group {match.group!r}: {what} names no group")
    if match.member is not None:
        spoken = [each for each in spoken if _has(layout_of(*each, response=False), _MEMBER_FIELDS)]
        _require(spoken, f"member {match.member!r}: {what} names no member")
    if match.role == COORDINATOR:
        spoken = [each for each in spoken if _names_group(*each)]
        _require(spoken, f"role {match.role!r}: {what} names no group")
    elif match.role is not None:
        spoken = [each for each in spoken if _may_have_role(*each)]
        _require(spoken, f"role {match.role!r}: {what} names no member of a classic group")
        if fault.phase is faults.Phase.AFTER:
            spoken = [each for each in spoken if each[0] is not ApiKey.LEAVE_GROUP]
            _require(
                spoken, f"role {match.role!r} after {what}: who left has none; leave out phase"
            )
    _check_action(action, spoken, what)


def _check_action(action: faults.Action, spoken: _Spoken, what: str) -> None:
    """Refuse an action that nothing can be done by to these requests."""
    if isinstance(action, faults.FailAppend | faults.SlowAppend):
        is_slow = isinstance(action, faults.SlowAppend)
        fitting = _WAITING_APPENDS if is_slow else _APPENDS
        spoken = [each for each in spoken if each[0] in fitting]
        reason = "appends nothing that waits for replicas" if is_slow else "appends nothing"
        name = "slow-append" if is_slow else "fail-append"
        _require(spoken, f"{name}: {what} {reason}, as Produce or OffsetCommit does")
    if isinstance(action, faults.MoveCoordinator):
        spoken = [each for each in spoken if _names_group(*each)]
        _require(spoken, f"move-coordinator: {what} names no group whose coordinator could move")
    if isinstance(action, faults.Fail):
        spoken = [each for each in spoken if _has(layout_of(*each, response=True), _ERROR_FIELDS)]
        _require(spoken, f"error {action.error}: an answer to {what} has no place for an error")


def _of_versions(match: faults.Match, ranges: Ranges) -> _Spoken:
    """The offered APIs and versions that a match selects."""
    if match.api is not None:
        api = faults.api_named(match.api)
        if api not in ranges:
            raise ConfigError(f"api {match.api}: this cluster does not offer it")
        ranges = {api: ranges[api]}
    lowest, highest = match.min_version, match.max_version
    spoken = [
        (api, version)
        for api, (oldest, newest) in ranges.items()
        for version in range(oldest, newest + 1)
        if (lowest is None or version >= lowest) and (highest is None or version <= highest)
    ]
    oldest = min(span[0] for span in ranges.values())
    newest = max(span[1] for span in ranges.values())
    asked = f"versions from {lowest or 0}" + ("" if highest is None else f" to {highest}")
    _require(spoken, f"{asked}: {match.api or 'this cluster'} has {oldest} to {newest}")
    return spoken


def _names_group(api: ApiKey, version: int) -> bool:
    """Whether such a request may name a group that `faults.groups_of` finds."""
    if api is ApiKey.FIND_COORDINATOR:
        return True
    return any(
        each.field.name in _GROUP_FIELDS for each in layout_of(api, version, response=False).present
    )


def _may_have_role(api: ApiKey, version: int) -> bool:
    """Whether such a request may be sent for a member of a classic group."""
    if api in _OF_OTHER_GROUPS:
        return False
    return _has(layout_of(api, version, response=False), _MEMBER_FIELDS)


def _has(layout: Layout, names: frozenset[str]) -> bool:
    return any(
        each.field.name in names or (each.layout is not None and _has(each.layout, names))
        for each in layout.present
    )


def _require(spoken: _Spoken, reason: str) -> None:
    if not spoken:
        raise ConfigError(f"{reason}: the rule could never act")
