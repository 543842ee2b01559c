"""How far a thing walks through the library: calls of functions, and modules entered.

Counted by `sys.setprofile`, so that the figures are the same on every machine: a function of
`coordinator_sim`, or a compiled reader or writer of messages, counts each time it is called.
Comprehensions and lambdas do not count, which are frames in some versions of Python only. Each walk
is the second of its kind in its process, whose caches are warm, unless it is called the first.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from types import FrameType
from typing import Final, Self

import coordinator_sim
from benchmarks.loopback import Loopback
from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.cli.arguments import find_scenario
from coordinator_sim.cli.simulation import Simulation, assignor_label
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.server.virtual_loop import VirtualLoop
from coordinator_sim_conformance.field_frames import Fields

_HERE: Final = str(coordinator_sim.__path__[0])
_NAMELESS: Final = frozenset(
    {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>", "<module>"}
)
JOIN: Final[Fields] = {
    "sessionTimeoutMs": 10_000,
    "rebalanceTimeoutMs": 60_000,
    "protocolType": "consumer",
    "protocols": [{"name": "range", "metadata": b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"}],
}
LINE: Final = (
    "[2024-05-06 07:08:0{},009] INFO [GroupCoordinator id=1] Stabilized group {} generation 3 "
    "(__consumer_offsets-7) with 2 members. "
    "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
SCENARIO: Final = Path(__file__).parents[1] / "examples" / "member_sends_late.json"


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
        code = frame.f_code
        name = code.co_filename
        if event != "call" or code.co_name in _NAMELESS:
            return
        if name.startswith((_HERE, "<")) and not name.startswith("<frozen"):
            self.calls[name.removeprefix(f"{_HERE}/")] += 1


async def walked(client: Loopback, api: ApiKey, version: int, fields: Fields) -> Walk:
    """The walk of one request, from its bytes to those of its answer and the alarm behind it."""
    await asyncio.sleep(0.01)
    frame = client.frame(api, version, fields)
    walk = Walk()
    with walk:
        client.send(frame)
    return walk


async def _requests() -> dict[str, Walk]:
    """The walks of requests on a cluster of one broker."""
    config = CoordinatorConfig(
        group_initial_rebalance_delay_ms=0, group_coordinator_append_linger_ms=0
    )
    cluster = Cluster(
        ClusterSettings(coordinator=config), endpoint=lambda _id, _listener: Endpoint("h", 1)
    )
    client = Loopback(cluster)
    client.call(ApiKey.FIND_COORDINATOR, 4, {"keyType": 0, "coordinatorKeys": ["first"]})
    found = {}
    for topic, kind in (("a", "CreateTopics 7, first of its process"), ("b", "CreateTopics 7")):
        topics = [{"name": topic, "numPartitions": 3, "replicationFactor": 1}]
        fields = {"topics": topics, "timeoutMs": 1_000}
        found[kind] = await walked(client, ApiKey.CREATE_TOPICS, 7, fields)
        client.answer(ApiKey.CREATE_TOPICS, 7)
    for group in ("first", "second"):
        await _classic(client, group, found)
        await _consumer(client, f"{group}-modern", found)
    return found


async def _classic(client: Loopback, group: str, found: dict[str, Walk]) -> None:
    """A classic group of one member: a generation, and a heartbeat in it."""
    fields = {"groupId": group, "memberId": "", **JOIN}
    member_id = client.call(ApiKey.JOIN_GROUP, 9, fields)["memberId"]
    joins = {**fields, "memberId": member_id}
    found["JoinGroup 9 that completes a generation"] = await walked(
        client, ApiKey.JOIN_GROUP, 9, joins
    )
    member = {"groupId": group, "memberId": member_id, "generationId": 1}
    assert client.answer(ApiKey.JOIN_GROUP, 9)["generationId"] == 1
    shares = [{"memberId": member_id, "assignment": b""}]
    client.call(ApiKey.SYNC_GROUP, 5, {**member, "assignments": shares})
    client.call(ApiKey.HEARTBEAT, 4, member)
    found["Heartbeat 4"] = await walked(client, ApiKey.HEARTBEAT, 4, member)
    assert client.answer(ApiKey.HEARTBEAT, 4)["errorCode"] == 0


async def _consumer(client: Loopback, group: str, found: dict[str, Walk]) -> None:
    """A consumer group of one member: its first heartbeat, and a steady one."""
    api = ApiKey.CONSUMER_GROUP_HEARTBEAT
    member = {"groupId": group, "memberId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    joins = {
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 60_000,
        "topicPartitions": [],
        "subscribedTopicNames": ["a"],
    }
    found["ConsumerGroupHeartbeat 1, first"] = await walked(client, api, 1, {**member, **joins})
    answer = client.answer(api, 1)
    steady = {**member, "memberEpoch": answer["memberEpoch"], "rebalanceTimeoutMs": -1}
    owned = answer["assignment"]["topicPartitions"]
    client.call(api, 1, {**steady, "topicPartitions": owned})
    found["ConsumerGroupHeartbeat 1, steady"] = await walked(client, api, 1, steady)
    assert client.answer(api, 1)["errorCode"] == 0


def _second(make: Callable[[int], object]) -> Walk:
    """The walk of the second call."""
    make(0)
    walk = Walk()
    with walk:
        make(1)
    return walk


def walks() -> Iterator[tuple[str, Walk]]:
    """Every walk by its name."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        yield from runner.run(_requests()).items()

    def read(number: int) -> object:
        line = LINE.format(number, f"g{number}")
        (event,) = parse_broker_log([line], source_ref="server.log", tz=UTC)
        assert event.group_id == f"g{number}"
        return event

    yield "broker-log line to TraceEvent", _second(read)

    def load(_: int) -> object:
        scenario = find_scenario(str(SCENARIO))
        label = assignor_label(scenario)
        return Simulation(scenario=scenario, seed=0, assignor=label, options={})

    yield "scenario file to checked Simulation", _second(load)


def main() -> None:
    """Print every walk: a line of JSON with its name, calls and modules."""
    for name, walk in walks():
        counts = {"calls": walk.calls.total(), "modules": len(walk.calls)}
        print(json.dumps({"walk": name, **counts}))


if __name__ == "__main__":
    main()
