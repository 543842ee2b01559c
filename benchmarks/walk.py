"""How far a request walks: calls of functions and modules entered, from socket to answer.

Counted by `sys.setprofile`, so that the figures are the same on every machine. A served cluster has
answered a request of the same kind before, so that its codec is compiled and its caches are warm.
"""

import sys
from collections import Counter
from types import FrameType
from typing import Final, Self

import coordinator_sim
from benchmarks.loopback import Loopback
from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim_conformance.field_frames import Fields

_HERE: Final = str(coordinator_sim.__path__[0])
JOIN: Final[Fields] = {
    "sessionTimeoutMs": 10_000,
    "rebalanceTimeoutMs": 60_000,
    "protocolType": "consumer",
    "protocols": [{"name": "range", "metadata": b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"}],
}


class Walk:
    """Counts what is called while it is entered.

    Attributes:
        calls: By module; a compiled reader or writer counts under its name.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __enter__(self) -> Self:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and (name.startswith((_HERE, "<"))):
            self.calls[name.removeprefix(f"{_HERE}/")] += 1


def walked(client: Loopback, api: ApiKey, version: int, fields: Fields) -> Walk:
    """The walk of one request."""
    frame = client.frame(api, version, fields)
    walk = Walk()
    with walk:
        client.send(frame)
    client.answer(api, version)
    return walk


def main() -> None:
    """Print both walks, and the modules of the first."""
    settings = ClusterSettings(coordinator=CoordinatorConfig(group_initial_rebalance_delay_ms=0))
    cluster = Cluster(settings, endpoint=lambda _id, _listener: Endpoint("h", 1))
    client = Loopback(cluster)
    client.call(ApiKey.FIND_COORDINATOR, 4, {"keyType": 0, "coordinatorKeys": ["first"]})
    walks = []
    for group in ("first", "second"):
        asked = {"groupId": group, "memberId": "", **JOIN}
        member_id = client.call(ApiKey.JOIN_GROUP, 9, asked)["memberId"]
        walks.append(walked(client, ApiKey.JOIN_GROUP, 9, {**asked, "memberId": member_id}))
    join = walks[-1].calls
    print(f"JoinGroup 9 that completes a generation: {join.total()} calls in {len(join)} modules")
    for topic in ("a", "b"):
        topics = [{"name": topic, "numPartitions": 3, "replicationFactor": 1}]
        create = walked(client, ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeoutMs": 1_000})
    print(f"CreateTopics 7: {create.calls.total()} calls in {len(create.calls)} modules")
    for module, count in join.most_common():
        print(f"  {count:4} {module}")


if __name__ == "__main__":
    main()
