"""Bench of a Connect worker's membership in its group: the port under test, its herder played.

The herder stops and starts work at once. No case is here.
"""

from typing import Final

import msgspec

from coordinator_sim.clients.config import WorkerConfig
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot, WorkerCoordinator
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.embedded.connect_protocol import (
    decode_connect_assignment,
    decode_worker_metadata,
    encode_connect_assignment,
    encode_worker_metadata,
)
from coordinator_sim.messages.embedded.contents import ConnectAssignment, WorkerMetadata
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim_conformance.client_cases.bench import (
    BROKER,
    GROUP,
    LEADER,
    MEMBER,
    Bench,
    PortBench,
)

PROTOCOLS: Final = ("default", "compatible", "sessioned")
"""Names of the protocols, by their version."""


class WorkerPortBench(PortBench[WorkerCoordinator]):
    """A worker's group membership; its herder stops and starts work at once."""

    def follow(self, version: int = 2, **fields: object) -> None:
        """Join as a follower with this assignment."""
        generation_id = len(self.sent(JoinGroupRequest))
        self.join(protocol_name=PROTOCOLS[version], generation_id=generation_id)
        said = {"version": version, "leader": LEADER, "config_offset": 1, **fields}
        self.sync(encode_connect_assignment(msgspec.convert(said, ConnectAssignment)))

    def lead(self, *offsets: int, version: int = 2, **fields: object) -> None:
        """Answer the JoinGroup: the worker leads members with these offsets, itself first."""
        members = tuple(
            JoinGroupResponseMember(
                f"{MEMBER}{number or ''}",
                None,
                encode_worker_metadata(
                    WorkerMetadata(version=version, url=f"http://{number}/", config_offset=offset)
                ),
            )
            for number, offset in enumerate(offsets)
        )
        self.join(protocol_name=PROTOCOLS[version], leader=MEMBER, members=members, **fields)

    def given(self) -> dict[str, ConnectAssignment]:
        """Return the worker's assignments as the leader, by member."""
        sync = self.sent(SyncGroupRequest)[-1]
        return {
            each.member_id: decode_connect_assignment(each.assignment) for each in sync.assignments
        }

    def offered(self) -> dict[str, WorkerMetadata]:
        """Return the metadata in the last JoinGroup, by protocol, in the order offered."""
        request = self.sent(JoinGroupRequest)[-1]
        return {each.name: decode_worker_metadata(each.metadata) for each in request.protocols}

    def be_told_to_rejoin(self) -> None:
        """Answer the next heartbeat with REBALANCE_IN_PROGRESS."""
        self.advance(3_000)
        self.beat(ErrorCode.REBALANCE_IN_PROGRESS)


def make_worker(bench: Bench, *offsets: int, **settings: int) -> WorkerPortBench:
    """Return a worker before its first poll; connector `x` has two tasks.

    Args:
        bench: Bench of the case.
        offsets: Offsets of the config topic that it has read, one a look; the last one stays.
        settings: Fields of `WorkerConfig`.
    """
    views = list(offsets or (1,))

    def snapshot() -> ConfigSnapshot:
        offset = views.pop(0) if len(views) > 1 else views[0]
        return ConfigSnapshot(offset=offset, connectors={"x": 2})

    port = WorkerCoordinator(
        msgspec.convert(settings, WorkerConfig),
        client_id="worker",
        group_id=GROUP,
        url="http://0/",
        config_snapshot=snapshot,
        bootstrap=(BROKER,),
    )
    return WorkerPortBench(bench, port)
