"""A million hostile frames into connections without sockets, and a healthy client beside them."""

import gc
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.pending_answer import PendingAnswer
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import join_group, offset_commit
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim_conformance.field_frames import request_frame
from tests.abuse.hostile_frames import spoilt, true_frames
from tests.unit.broker.frames_client import FramesClient

CHECK_EVERY: Final = 200
FRAMES_A_CONNECTION: Final = 40
FRAMES_A_CLUSTER: Final = 50_000
STEP_MS: Final = 1
WINDOW_MS: Final = 10_000_000
"""Longer than any session, rebalance or fetch can be asked to last and be waited for here."""


class Hostile:
    """One connection that sends what it likes; it counts its answers and its end."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.answers = 0
        self.reason: str | None = None
        self.connection = Connection(
            cluster, 1, number=number, listener="PLAINTEXT", client_host="/10.0.0.1", output=self
        )

    def write(self, data: bytes) -> None:
        """Take an answer."""
        self.answers += len(data) > 0

    def close(self, reason: str) -> None:
        """Hear of the end."""
        self.reason = reason


class Healthy:
    """A member that heartbeats and commits, and wants to be answered each time."""

    def __init__(self, cluster: Cluster, now_ms: int) -> None:
        self.client = FramesClient(cluster, number=1)
        self._cluster = cluster
        header = RequestHeader(api_key=10, api_version=1, correlation_id=0, client_id="well")
        frame = request_frame(header, {"key": "healthy", "keyType": 0})
        self.client.connection.received(frame, Instants(now_ms, now_ms))
        self.slowest_s = 0.0
        join = join_group.JoinGroupRequest(
            group_id="healthy",
            session_timeout_ms=1_800_000,
            rebalance_timeout_ms=1_800_000,
            member_id="",
            protocol_type="consumer",
            protocols=(join_group.JoinGroupRequestProtocol("range", b"s"),),
        )
        asked = self._ask(join, 4, now_ms)
        assert isinstance(asked, join_group.JoinGroupResponse)
        self.client.connection.received(_frame(join, asked.member_id), Instants(now_ms, now_ms))
        for later in (3_000, 6_000):
            cluster.expire(Instants(now_ms + later, now_ms + later))
        self.member_id = asked.member_id
        sync = SyncGroupRequest(
            group_id="healthy",
            generation_id=1,
            member_id=self.member_id,
            assignments=(SyncGroupRequestAssignment(self.member_id, b"a"),),
        )
        self._ask(sync, 3, now_ms + 6_000)

    def check(self, now_ms: int) -> None:
        """Send both requests; each must be answered without an error before anything else."""
        beat = HeartbeatRequest(group_id="healthy", generation_id=1, member_id=self.member_id)
        response = self._ask(beat, 3, now_ms)
        assert isinstance(response, HeartbeatResponse)
        assert response.error_code is ErrorCode.NONE, response
        topics = (
            offset_commit.OffsetCommitRequestTopic(
                "healthy", partitions=(offset_commit.OffsetCommitRequestPartition(0, now_ms),)
            ),
        )
        commit = offset_commit.OffsetCommitRequest(
            group_id="healthy",
            generation_id_or_member_epoch=1,
            member_id=self.member_id,
            topics=topics,
        )
        response = self._ask(commit, 7, now_ms)
        assert isinstance(response, offset_commit.OffsetCommitResponse)
        assert response.topics[0].partitions[0].error_code is ErrorCode.NONE

    def _ask(self, request: Request, version: int, now_ms: int) -> Response:
        before = time.perf_counter()
        self.client.frames.clear()
        number = self.client.send(request, version, now_ms)
        self.slowest_s = max(self.slowest_s, time.perf_counter() - before)
        assert self.client.closed is None
        ((answered, response),) = self.client.answers()
        assert answered == number
        self.client._sent.clear()
        return response


def _frame(join: join_group.JoinGroupRequest, member_id: str) -> bytes:
    from msgspec.structs import replace

    from coordinator_sim.messages.codec.frames import encode_request

    return encode_request(replace(join, member_id=member_id), 4, correlation_id=0, client_id="test")


class Ordeal:
    """Hostile frames in numbers, one cluster after the other.

    Attributes:
        sent: Frames so far.
        answers: That came to hostile connections.
        endings: Why connections ended, in short.
        bugs: Connections that ended because of the server.
        left: Requests and connections that a cluster still knew at its end, at most.
        slowest_frame: Seconds and bytes of the frame that took longest.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - tests
        self.sent = self.answers = self.connections = 0
        self.endings: Counter[str] = Counter()
        self.slowest_frame = (0.0, b"")
        self.slowest_healthy_s = 0.0
        self.left: Counter[str] = Counter()
        self.bugs: list[str] = []
        self._others = _alive()

    def run(self, count: int) -> None:
        """Send that many frames."""
        while count > 0:
            some = min(count, FRAMES_A_CLUSTER)
            self._run_cluster(some)
            count -= some

    def _run_cluster(self, count: int) -> None:
        cluster = make_cluster()
        frames = true_frames(cluster)
        now_ms = 1_000_000
        healthy = Healthy(cluster, now_ms)
        now_ms += 10_000
        hostile = Hostile(cluster, 2)
        for number in range(count):
            now_ms += STEP_MS
            if hostile.reason is not None or number % FRAMES_A_CONNECTION == 0:
                hostile = self._next(cluster, hostile)
            self._send(hostile, spoilt(self.random, frames, cluster), now_ms)
            if number % CHECK_EVERY == 0:
                cluster.expire(Instants(now_ms, now_ms))
                healthy.check(now_ms)
        self._next(cluster, hostile)
        self.slowest_healthy_s = max(self.slowest_healthy_s, healthy.slowest_s)
        self._look_back(cluster, now_ms)

    def _next(self, cluster: Cluster, before: Hostile) -> Hostile:
        before.connection.closed()
        self.answers += before.answers
        if before.reason is not None:
            if "met a bug" in before.reason:
                self.bugs.append(before.reason)
            self.endings[before.reason.split(":")[0][:40]] += 1
        self.connections += 1
        return Hostile(cluster, before.connection.number + 1)

    def _send(self, hostile: Hostile, frame: bytes, now_ms: int) -> None:
        began = time.perf_counter()
        try:
            hostile.connection.received(frame, Instants(now_ms, now_ms))
        except Exception as error:
            error.add_note(f"frame {self.sent}: {frame.hex()}")
            raise
        took = time.perf_counter() - began
        if took > self.slowest_frame[0]:
            self.slowest_frame = (took, frame)
        self.sent += 1

    def _look_back(self, cluster: Cluster, now_ms: int) -> None:
        """What is left of connections and requests once all they waited for has come."""
        for step in range(4):
            at_ms = now_ms + WINDOW_MS * (step + 1)
            cluster.expire(Instants(at_ms, at_ms))
        for kind, count in _alive().items():
            others = self._others[kind]
            self.left[kind.__name__] = max(self.left[kind.__name__], count - others)


def _alive() -> dict[type, int]:
    """How many requests and connections there are in this process."""
    gc.collect()
    found = Counter(type(each) for each in gc.get_objects())
    return {kind: found[kind] for kind in (PendingAnswer, Connection)}


def make_cluster() -> Cluster:
    """One broker, with a topic for the healthy client."""
    cluster = Cluster(
        ClusterSettings(), endpoint=lambda broker, _: Endpoint("h", 9) if broker == 1 else None
    )
    now = Instants(1_000_000, 1_000_000)
    cluster.begin(now)
    cluster.topics.create_spread("healthy", 1, now)
    return cluster


def rss_kb() -> int:
    """Memory of this process."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0])
