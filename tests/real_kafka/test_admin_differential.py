"""A broker and a served cluster are asked the same, and answer alike, field by field."""

import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import read_response_frame, request_frame
from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, Broker
from tests.real_kafka.admin_requests import (
    CLUSTER,
    CONFIGS,
    DENIED,
    FEATURES,
    RULES,
    TOPICS,
    TWO_PHASE,
    Asked,
)
from tests.real_kafka.settling import told_in_the_end
from tests.unit.broker.frames_client import DataClient

pytestmark = pytest.mark.real_kafka

AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
UNGUARDED: Final = {"num.partitions": "1"}
GUARDED: Final = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
BY_RULES: Final = {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
NOT_COMPARED: Final = ("throttleTimeMs", "documentation", "host", "port")
OF_JAVA: Final = "Request Request("
"""A refusal of the controller prints an object of Java's."""
SETTLE_S: Final = 0.15
"""After a change: what is asked next may be judged by the broker's metadata."""
LENGTH_BYTES: Final = 4
CLOSED: Final = "the connection is closed"


class RealClient:
    """A connection to a broker; another one after each that it closes."""

    def __init__(self, bootstrap: str, client_id: str = "x") -> None:
        host, _, port = bootstrap.rpartition(":")
        self._address = (host, int(port))
        self._client_id = client_id
        self._socket = socket.create_connection(self._address)

    def ask(self, asked: Asked) -> Any:  # noqa: ANN401 - fields of any kind
        """The answer, or that there is none."""
        api, version, fields = asked
        header = RequestHeader(
            api_key=int(api), api_version=version, correlation_id=1, client_id=self._client_id
        )
        frame = request_frame(header, fields)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        length = self._read(LENGTH_BYTES)
        if len(length) < LENGTH_BYTES:
            self.close()
            self._socket = socket.create_connection(self._address)
            return CLOSED
        return read_response_frame(api, version, self._read(*struct.unpack(">i", length)))[1]

    def close(self) -> None:
        """Let go of the broker."""
        self._socket.close()

    def _read(self, count: int) -> bytes:
        found = b""
        while len(found) < count and (more := self._socket.recv(count - len(found))):
            found += more
        return found


def ask_ours(cluster: Cluster, asked: Asked) -> Any:  # noqa: ANN401 - as above
    """The same of a served cluster."""
    client = DataClient(cluster)
    try:
        return client.call(*asked)
    except IndexError:
        return CLOSED


def plain(value: Any, name: str = "") -> Any:  # noqa: ANN401 - as above
    """An answer without what must differ; lists of structs in one order."""
    if isinstance(value, dict):
        return {key: plain(each, key) for key, each in value.items() if key not in NOT_COMPARED}
    if isinstance(value, list):
        found = [plain(each) for each in value]
        return sorted(found, key=lambda each: json.dumps(each, sort_keys=True, default=repr))
    if isinstance(value, str) and value.startswith(OF_JAVA):
        return None
    if name == "topicId":
        return "none" if value == ZERO_UUID else "some"
    return value


def only_looks(asked: Asked) -> bool:
    """Whether a request changes nothing."""
    api, _, fields = asked
    if api is ApiKey.METADATA and fields.get("allowAutoTopicCreation", True):
        return False
    return api.name.startswith(("DESCRIBE", "LIST", "METADATA", "FIND"))


def is_loading(answer: Any) -> bool:  # noqa: ANN401 - as above
    """Whether the coordinator that was asked still reads its log."""
    if answer == CLOSED:
        return False
    return bool(answer.get("errorCode") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def compare(tmp_path: Path, given: dict[str, str], asked: Iterator[Asked]) -> None:
    """Ask both everything; the differences are nothing."""
    settings = ClusterSettings(
        profile=profile_named("4.3"), given=given, internal_replication_factor=1
    )
    ours = Cluster(settings, endpoint=lambda _id, _name: Endpoint("localhost", 9092))
    different = []
    with (
        Broker(tmp_path / "kafka", dict(given), TOOLS_VERSION) as broker,
        closing(RealClient(broker.bootstrap)) as theirs,
    ):
        for each in asked:
            found = plain(ask_ours(ours, each))
            if only_looks(each):
                wanted = told_in_the_end(lambda each=each: plain(theirs.ask(each)), found)
            else:
                wanted = plain(theirs.ask(each))
                while is_loading(wanted):
                    wanted = plain(theirs.ask(each))
                time.sleep(SETTLE_S)
            if wanted != found:
                different.append((each[0].name, each[2], wanted, found))
    assert different == []


def test_topics_cluster_and_settings_are_answered_alike(tmp_path: Path) -> None:
    """Topics, partitions, elections, metadata, quotas and settings, with every refusal."""
    compare(tmp_path, UNGUARDED, iter((*TOPICS, *CLUSTER, *CONFIGS)))


def test_rules_and_verifiers_are_answered_alike(tmp_path: Path) -> None:
    """ACLs and SCRAM credentials, made, shown and deleted by a super user."""
    compare(tmp_path, GUARDED, iter(RULES))


def test_refusals_for_lack_of_rights_are_alike(tmp_path: Path) -> None:
    """What somebody may not do, or not see, is said as a broker says it."""
    compare(tmp_path, BY_RULES, iter(DENIED))


def test_features_are_raised_and_lowered_alike(tmp_path: Path) -> None:
    """Every level of every feature, and `min.insync.replicas` under eligible leader replicas."""
    compare(tmp_path, {}, iter(FEATURES))


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_two_phase_commit_is_answered_alike(tmp_path: Path, enabled: str) -> None:
    """InitProducerId 6, which only unstable versions have."""
    two_phase = {"transaction.two.phase.commit.enable": enabled}
    compare(tmp_path, {"unstable.api.versions.enable": "true", **two_phase}, iter(TWO_PHASE))
