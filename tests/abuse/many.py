"""Many members of one group, and many groups, without sockets: what each costs."""

import time
from dataclasses import dataclass

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader, encode_request
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame
from tests.abuse.beside import make_cluster, rss_kb
from tests.unit.broker.frames_client import FramesClient

_START_MS = 1_000_000
_DELAYS = 8
_DELAY_MS = 3_000
_SYNC_MS = _START_MS + _DELAYS * _DELAY_MS


@dataclass(frozen=True)
class Cost:
    """What so many of something cost.

    Args:
        count: How many came into being.
        cpu_s: Of all.
        kb_each: Memory of one.
    """

    count: int
    cpu_s: float
    kb_each: float


def members_of_one_group(count: int) -> Cost:
    """All join, the leader assigns, all are told."""
    cluster, before_kb = _cluster(), rss_kb()
    clients = [FramesClient(cluster, number=2 + number) for number in range(count)]
    began = time.process_time()
    for client in clients:
        _join(client, "large")
    _let_delays_pass(cluster)
    joined = [_last(client, ApiKey.JOIN_GROUP) for client in clients]
    ids = [each["memberId"] for each in joined]
    assignments = tuple(SyncGroupRequestAssignment(each, b"a" * 64) for each in ids)
    # The leader comes last, so that all others wait.
    for client, each in sorted(
        zip(clients, joined, strict=True), key=lambda pair: len(pair[1]["members"])
    ):
        request = SyncGroupRequest(
            group_id="large",
            generation_id=each["generationId"],
            member_id=each["memberId"],
            assignments=assignments if each["members"] else (),
        )
        _send(client, encode_request(request, 3, correlation_id=2, client_id="m"), _SYNC_MS)
    cpu_s = time.process_time() - began
    told = sum(_last(client, ApiKey.SYNC_GROUP)["errorCode"] == 0 for client in clients)
    return Cost(told, cpu_s, (rss_kb() - before_kb) / count)


def groups(count: int) -> Cost:
    """Groups of one member each; all are listed."""
    cluster, before_kb = _cluster(), rss_kb()
    began = time.process_time()
    for number in range(count):
        client = FramesClient(cluster, number=2 + number)
        _join(client, f"group-{number}")
        client.connection.closed()
    _let_delays_pass(cluster)
    asking = FramesClient(cluster)
    header = RequestHeader(api_key=16, api_version=3, correlation_id=9, client_id="m")
    _send(asking, request_frame(header, {}), _SYNC_MS)
    listed = len(_last(asking, ApiKey.LIST_GROUPS)["groups"])
    return Cost(listed, time.process_time() - began, (rss_kb() - before_kb) / count)


def _cluster() -> Cluster:
    cluster = make_cluster()
    header = RequestHeader(api_key=10, api_version=1, correlation_id=0, client_id="m")
    frame = request_frame(header, {"key": "large", "keyType": 0})
    _send(FramesClient(cluster), frame, _START_MS)
    return cluster


def _join(client: FramesClient, group_id: str) -> None:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1_800_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", b"s" * 64),),
    )
    _send(client, encode_request(request, 3, correlation_id=1, client_id="m"), _START_MS)


def _send(client: FramesClient, frame: bytes, at_ms: int) -> None:
    client.connection.received(frame, Instants(at_ms, at_ms))


def _let_delays_pass(cluster: Cluster) -> None:
    for number in range(1, _DELAYS):
        at_ms = _START_MS + number * _DELAY_MS
        cluster.expire(Instants(at_ms, at_ms))


def _last(client: FramesClient, api: ApiKey) -> Fields:
    return read_response_frame(api, 3, client.frames[-1])[1]
