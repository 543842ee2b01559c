"""A client of a served cluster that speaks in fields by Kafka's names, without a socket."""

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame
from tests.unit.broker.frames_client import FramesClient

START = 1_700_000_000_000


class FieldsClient(FramesClient):
    """Asks one thing after the other, at instants of a clock that only `wait` moves.

    Args:
        cluster: Asked.
        broker_id: Whom this client reaches.
        number: Of its connection.
    """

    def __init__(self, cluster: Cluster, broker_id: int = 1, number: int = 1) -> None:
        super().__init__(cluster, broker_id, number)
        self.cluster = cluster
        self.now_ms = START

    def close(self, reason: str) -> None:
        """No test here loses its connection."""
        raise AssertionError(reason)

    def call(self, api: ApiKey, version: int, fields: Fields) -> Fields:
        """The answer to a request, waited for as long as the cluster has something to do."""
        self.begin(api, version, fields)
        while not self.frames:
            if self.cluster.has_work:
                self.cluster.work(Instants(self.now_ms, self.now_ms))
            else:
                self._jump()
        return read_response_frame(api, version, self.frames.pop())[1]

    def begin(self, api: ApiKey, version: int, fields: Fields) -> None:
        """Send a request without waiting for its answer."""
        header = RequestHeader(
            api_key=int(api), api_version=version, correlation_id=0, client_id="test"
        )
        self.connection.received(request_frame(header, fields), Instants(self.now_ms, self.now_ms))

    def _jump(self) -> None:
        found = (self.cluster.next_group_deadline_ms(), self.cluster.next_wall_deadline_ms())
        due_ms = min(each for each in found if each is not None)
        self.now_ms = max(self.now_ms, due_ms)
        self.cluster.expire(Instants(self.now_ms, self.now_ms))

    def wait(self, duration_ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + duration_ms
        while True:
            found = (self.cluster.next_group_deadline_ms(), self.cluster.next_wall_deadline_ms())
            due_ms = min((each for each in found if each is not None), default=end_ms)
            if due_ms >= end_ms:
                break
            self.now_ms = max(due_ms, self.now_ms + 1)
            self.cluster.expire(Instants(self.now_ms, self.now_ms))
        self.now_ms = end_ms
        self.cluster.expire(Instants(end_ms, end_ms))
