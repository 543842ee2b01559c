"""Assignor cases, one JSON object per line; runs and compares them.

A line names its assignor. Client assignors compare as ordered lists per member; Connect compares
every step's delay, assigned and revoked work in list order, with one assignor instance per line
that is replaced where the step says `new_leader`; server-side assignors compare as sets.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from coordinator_sim.assignors import contract
from coordinator_sim.assignors.foreign.contract import Member
from coordinator_sim.assignors.registry import (
    CONSUMER_ASSIGNORS,
    make_connect_assignor,
    make_consumer_assignor,
)
from coordinator_sim.assignors.server import (
    ServerAssignor,
    ServerMember,
    ServerRangeAssignor,
    ServerUniformAssignor,
)
from coordinator_sim.assignors.user_data import encode_sticky_entries
from coordinator_sim.errors import UNREADABLE_JSON, CoordinatorSimError
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition, connector_resource
from coordinator_sim.messages.embedded.contents import Subscription

T = TypeVar("T")

CONNECT_INCREMENTAL: Final = "connect-incremental"
"""Assignor name of Connect cases."""

SERVER_ASSIGNORS: Final[Mapping[str, ServerAssignor]] = {
    "uniform": ServerUniformAssignor(),
    "server-range": ServerRangeAssignor(),
}
"""Assignor names of server-side cases; `range` alone is the client's."""

TaskCount = Annotated[int, Meta(ge=0, le=100_000)]


class CaseFormError(CoordinatorSimError):
    """A malformed case; the message names the field."""


class ConsumerCase(Struct, frozen=True):
    """One assignment of a consumer assignor; members in JoinGroup order."""

    assignor: str
    topics: dict[str, tuple[tuple[str, ...], ...]]
    members: tuple[Member, ...]
    label: str = ""
    expected: dict[str, tuple[tuple[str, int], ...]] | None = None


class CaseLoad(Struct, frozen=True):
    """Connectors and tasks of one worker, in list order."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[tuple[str, int], ...] = ()


class CaseWorker(Struct, frozen=True):
    """A Connect worker with its running work, as decoded from the wire."""

    id: str
    connectors: tuple[str, ...] = ()
    tasks: tuple[tuple[str, int], ...] = ()


class ConnectStep(Struct, frozen=True):
    """One rebalance of a Connect group; `config` is connector -> number of tasks."""

    now: int
    generation: int
    last_completed: int
    config: dict[str, TaskCount]
    members: tuple[CaseWorker, ...]
    step: str = ""
    new_leader: bool = False
    delay: int | None = None
    assigned: dict[str, CaseLoad] | None = None
    revoked: dict[str, CaseLoad] | None = None


class ConnectCase(Struct, frozen=True):
    """A sequence of rebalances of one Connect group."""

    assignor: str
    max_delay: Annotated[int, Meta(ge=0)]
    steps: tuple[ConnectStep, ...]
    label: str = ""


TOPIC_ID_BYTES: Final = 16

PartitionCount = Annotated[int, Meta(ge=0, le=1_000_000)]


class CaseServerMember(Struct, frozen=True):
    """A member of a group of the new protocol; topics by id in URL-safe base64."""

    id: str
    subscribed: tuple[str, ...]
    current: dict[str, tuple[int, ...]] = {}
    instance: str | None = None


class ServerCase(Struct, frozen=True):
    """One assignment of a server-side assignor; `topics` are id -> number of partitions."""

    assignor: str
    topics: dict[str, PartitionCount]
    members: tuple[CaseServerMember, ...]
    label: str = ""
    expected: dict[str, dict[str, tuple[int, ...]]] | None = None


Case = ConsumerCase | ConnectCase | ServerCase


class _Head(Struct, frozen=True):
    assignor: str


class CaseOutcome(Struct, frozen=True):
    """Answer of an assignor: member -> resources given, in list order.

    Args:
        step: Name of the step; empty for consumers.
        revoked: Worker -> work it must stop, in list order.
    """

    assigned: dict[str, list[str]]
    revoked: dict[str, list[str]] = {}
    delay_ms: int = 0
    step: str = ""


class Difference(Struct, frozen=True):
    """The first difference between an assignor and a case."""

    label: str
    assignor: str
    step: str
    member: str
    message: str

    def __str__(self) -> str:
        """Format one line: label, step and member where present, and the difference."""
        places = [f"{self.label or 'case'} ({self.assignor})"]
        places += [f"step {self.step!r}"] if self.step else []
        places += [f"member {self.member!r}"] if self.member else []
        return f"{', '.join(places)}: {self.message}"


def parse_case(line: bytes) -> Case:
    """Parse a case from its JSON line.

    Raises:
        CaseFormError: the line is not JSON, a field is missing or of another type, the assignor is
        unknown, or two members have one id.
    """
    assignor = _decode(line, _Head).assignor
    case: Case
    if assignor in CONSUMER_ASSIGNORS:
        case = _decode(line, ConsumerCase)
        _check_ids(case.members)
    elif assignor == CONNECT_INCREMENTAL:
        case = _decode(line, ConnectCase)
        for step in case.steps:
            _check_ids(step.members)
    elif assignor in SERVER_ASSIGNORS:
        case = _decode(line, ServerCase)
        _check_ids(case.members)
    else:
        known = ", ".join((*CONSUMER_ASSIGNORS, CONNECT_INCREMENTAL, *SERVER_ASSIGNORS))
        raise CaseFormError(f"unknown assignor {assignor!r}; known are {known}")
    return case


def _decode(line: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=form)
    except UNREADABLE_JSON as error:
        raise CaseFormError(str(error)) from error


def _check_ids(members: Sequence[Member | CaseWorker | CaseServerMember]) -> None:
    ids = [member.id for member in members]
    if len(set(ids)) < len(ids):
        raise CaseFormError("two members have the same id")
    if not ids:
        raise CaseFormError("`members` is empty")


def run_case(case: Case) -> Iterator[CaseOutcome]:
    """Yield the answers of our assignor: one outcome, or one per step.

    Raises:
        AssignmentFailed: the assignor cannot finish.
        CaseFormError: a topic id is malformed.
    """
    if isinstance(case, ConsumerCase):
        yield _run_consumer_case(case)
    elif isinstance(case, ServerCase):
        yield _run_server_case(case)
    else:
        yield from _run_connect_case(case)


def _run_consumer_case(case: ConsumerCase) -> CaseOutcome:
    members = [_assignor_member(member, case.assignor) for member in case.members]
    assignment = make_consumer_assignor(case.assignor).assign(case.topics, members)
    return CaseOutcome({m: [tp.resource() for tp in given] for m, given in assignment.items()})


def _assignor_member(member: Member, assignor: str) -> contract.AssignorMember:
    owned = member.owned
    user_data = None
    if assignor == "sticky" and (owned or member.generation >= 0):
        # Runs of one topic instead of one entry per topic keep the order of the case.
        runs = [
            (topic, [partition.partition for partition in run])
            for topic, run in groupby(owned, key=lambda partition: partition.topic)
        ]
        user_data = encode_sticky_entries(runs, member.generation)
    return contract.AssignorMember(
        member_id=member.id,
        group_instance_id=member.instance,
        subscription=Subscription(
            topics=member.topics,
            user_data=user_data,
            owned_partitions=owned,
            generation_id=member.generation,
            rack_id=member.rack,
        ),
    )


def _run_connect_case(case: ConnectCase) -> Iterator[CaseOutcome]:
    assignor = make_connect_assignor("sessioned", scheduled_rebalance_max_delay_ms=case.max_delay)
    for step in case.steps:
        if step.new_leader:
            assignor = make_connect_assignor(
                "sessioned", scheduled_rebalance_max_delay_ms=case.max_delay
            )
        plan = assignor.assign(
            configured=step.config,
            members=[
                contract.ConnectMember(
                    member_id=worker.id,
                    connectors=worker.connectors,
                    tasks=tuple(ConnectorTaskId(*task) for task in worker.tasks),
                )
                for worker in step.members
            ],
            generation_id=step.generation,
            last_completed_generation_id=step.last_completed,
            now_ms=step.now,
        )
        yield CaseOutcome(
            assigned={worker: _resources(load) for worker, load in plan.assigned.items()},
            revoked={worker: _resources(load) for worker, load in plan.revoked.items()},
            delay_ms=plan.delay_ms,
            step=step.step,
        )


def _run_server_case(case: ServerCase) -> CaseOutcome:
    names = {_topic_id(name): name for name in case.topics}
    members = [
        ServerMember(
            member_id=member.id,
            group_instance_id=member.instance,
            subscribed=tuple(_topic_id(name) for name in member.subscribed),
            assigned={_topic_id(name): own for name, own in member.current.items()},
        )
        for member in case.members
    ]
    topics = {topic_id: case.topics[name] for topic_id, name in names.items()}
    assignment = SERVER_ASSIGNORS[case.assignor].assign(topics, members)
    return CaseOutcome(
        {
            member_id: _sorted_resources({names[t]: numbers for t, numbers in own.items()})
            for member_id, own in assignment.items()
        }
    )


def _topic_id(name: str) -> bytes:
    try:
        topic_id = base64.urlsafe_b64decode(f"{name}==")
    except (binascii.Error, ValueError):
        topic_id = b""
    if len(topic_id) != TOPIC_ID_BYTES:
        raise CaseFormError(f"{name!r} is no topic id: 16 bytes in URL-safe base64")
    return topic_id


def _sorted_resources(partitions: Mapping[str, Sequence[int]]) -> list[str]:
    return [
        TopicPartition(topic, number).resource()
        for topic in sorted(partitions)
        for number in sorted(partitions[topic])
    ]


def _resources(load: contract.WorkerLoad | CaseLoad) -> list[str]:
    return [connector_resource(connector) for connector in load.connectors] + [
        ConnectorTaskId(*task).resource() for task in load.tasks
    ]


def first_difference(case: Case) -> Difference | None:
    """Return where our assignor first differs from the case's expectation; None if nowhere.

    An assignor that cannot finish counts as a difference.

    Raises:
        CaseFormError: the case has no expectation.
    """
    expectations = list(_expectations(case))
    step = ""
    try:
        for expected, outcome in zip(expectations, run_case(case), strict=True):
            step = outcome.step
            found = _compare(expected, outcome)
            if found is not None:
                return Difference(case.label, case.assignor, step, *found)
    except contract.AssignmentFailed as error:
        return Difference(case.label, case.assignor, step, "", f"no assignment: {error}")
    return None


def _expectations(case: Case) -> Iterator[CaseOutcome]:
    if isinstance(case, ConnectCase):
        yield from _expected_steps(case)
    elif case.expected is None:
        raise CaseFormError("Object missing required field `expected`, which a check needs")
    elif isinstance(case, ServerCase):
        yield CaseOutcome({member: _sorted_resources(own) for member, own in case.expected.items()})
    else:
        yield CaseOutcome(
            {m: [TopicPartition(*tp).resource() for tp in own] for m, own in case.expected.items()}
        )


def _expected_steps(case: ConnectCase) -> Iterator[CaseOutcome]:
    for index, step in enumerate(case.steps):
        if step.delay is None or step.assigned is None or step.revoked is None:
            raise CaseFormError(
                "Object missing required field `delay`, `assigned` or `revoked`, "
                f"which a check needs - at `$.steps[{index}]`"
            )
        yield CaseOutcome(
            assigned={worker: _resources(load) for worker, load in step.assigned.items()},
            revoked={worker: _resources(load) for worker, load in step.revoked.items()},
            delay_ms=step.delay,
            step=step.step,
        )


def _compare(expected: CaseOutcome, actual: CaseOutcome) -> tuple[str, str] | None:
    """Return the member and the message of the first difference."""
    if expected.delay_ms != actual.delay_ms:
        return "", f"delay is {actual.delay_ms} ms, expected {expected.delay_ms}"
    return _compare_lists("assigned", expected.assigned, actual.assigned) or _compare_lists(
        "revoked", expected.revoked, actual.revoked
    )


def _compare_lists(
    what: str, expected: Mapping[str, list[str]], actual: Mapping[str, list[str]]
) -> tuple[str, str] | None:
    for member in dict.fromkeys((*expected, *actual)):
        if expected.get(member) != actual.get(member):
            return member, (
                f"{what} {_text(actual.get(member))}, expected {_text(expected.get(member))}"
            )
    return None


def _text(resources: Sequence[str] | None) -> str:
    if resources is None:
        return "not mentioned"
    return " ".join(resources) or "nothing"
