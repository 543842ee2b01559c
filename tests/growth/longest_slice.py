"""Ask every API, timer and path of the control surface for much, and name the longest slice.

    python -m tests.growth.longest_slice [--size N] [--api NAME]... [--only apis|hard|timers|http]

Prints one JSON object: for each of them the longest time for which it kept all others waiting, in
milliseconds of the machine that `SPIN_MS` was measured on. A slice is one call of a verb by which
a driver enters a cluster, or one callback of the event loop; one meter around these sees all work
whatever it is made of.

Each question is asked in a copy of this process, of a cluster with `size` of everything, and names
`size` items. What takes longer than `RETRY_MS`, but not ten times as long, is asked
again twice, and the least counts.
"""

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import httpx

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE
from coordinator_sim.server.control.access import Access
from coordinator_sim.server.control.app import make_app
from coordinator_sim.server.control.control import Control
from coordinator_sim.server.control.feed import Feed
from coordinator_sim.server.control.routes import ROUTES
from coordinator_sim.server.kafka_server import KafkaServer
from coordinator_sim.server.metering import Meter
from coordinator_sim.server.timekeeper import VirtualClock
from coordinator_sim.server.tracing import Tracing
from tests.growth.crowded_world import CROWD, START_MS, WIDE, CrowdedWorld
from tests.growth.forked import apart
from tests.growth.growing_requests import Question, grown_frame, questions_of

SPIN_MS: Final = 1.3
"""What `_spin` takes on the machine in whose milliseconds slices are told (measured when idle)."""
RETRY_MS: Final = 40.0
_HOPELESS_MS: Final = 400.0
_SPINS: Final = 20_000
_LATER_MS: Final = 70_000
_DAY_MS: Final = 86_400_000
_A_DAY: Final = {
    "offsets.retention.minutes": "1440",
    "transactional.id.expiration.ms": str(_DAY_MS),
}
"""Of Kafka's seven days six more have nothing but timers that find nothing to do."""
_MOST_SLICES: Final = 20_000
_VERBS: Final = (
    (Connection, "received"),
    (Cluster, "expire"),
    (Cluster, "work"),
    (asyncio.Handle, "_run"),
)
"""All ways by which a driver enters a cluster, and by which the event loop enters a driver."""


class SliceMeter:
    """Times the outermost call of the verbs above, by the CPU of their thread.

    Attributes:
        longest_s: Of the slices so far.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._is_in_slice = False

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Put the meter around the verbs, as long as this lasts."""
        originals = [(owner, name, getattr(owner, name)) for owner, name in _VERBS]
        for owner, name, original in originals:
            setattr(owner, name, self._timed(original))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _timed(self, verb: Callable[..., object]) -> Callable[..., object]:
        def timed(*args: object, **named: object) -> object:
            if self._is_in_slice:
                return verb(*args, **named)
            self._is_in_slice = True
            begun = time.thread_time()
            try:
                return verb(*args, **named)
            finally:
                self.longest_s = max(self.longest_s, time.thread_time() - begun)
                self._is_in_slice = False

        return timed


def _spin() -> float:
    """The CPU time of work that never changes, in seconds."""
    begun = time.thread_time()
    found: dict[int, int] = {}
    for each in range(_SPINS):
        found[each & 255] = found.get(each & 127, 0) + each
    return time.thread_time() - begun


def _slice_ms(work: Callable[[], object]) -> float:
    """The longest slice of some work, in milliseconds of the reference machine."""
    meter = SliceMeter()
    spin_s = min(_spin() for _ in range(3))
    with meter.counting():
        work()
    spin_s = max(spin_s, min(_spin() for _ in range(3)))
    return meter.longest_s / spin_s * SPIN_MS


def longest_ms(work: Callable[[], object]) -> float:
    """The longest slice of some work, done in copies of this process."""
    found: float = apart(partial(_slice_ms, work))
    for _ in range(2):
        if RETRY_MS < found < _HOPELESS_MS:
            found = min(found, apart(partial(_slice_ms, work)))
    return found


# -- what is asked -------------------------------------------------------------------------


Asked = Iterator[tuple[str, str, Callable[[], object]]]
"""What a slice is told under, more about it, and the work."""


def _apis(world: CrowdedWorld, apis: list[str] | None) -> Asked:
    for api, (_, newest) in world.cluster.versions.ranges.items():
        if apis is None or api.name in apis:
            for question in questions_of(api, newest):
                yield api.name, str(question), partial(_ask, world, question)


def _ask(world: CrowdedWorld, question: Question) -> None:
    line = world.line()
    world.send(line, grown_frame(world, question))
    for _ in range(_MOST_SLICES):
        if line.frames or line.closed is not None or not world.jump():
            break
    world.linger(_LATER_MS)


def _wait(world: CrowdedWorld, until_ms: int) -> None:
    """Meet every deadline up to an instant, and no end of those that come again and again."""
    for _ in range(_MOST_SLICES):
        if not world.jump(until_ms):
            break


_HARD: Final = {
    "an expression with 1,000 repeats": "(a?){1000}.*",
    "an expression as long as may be": "(a|b?)*" * 2_300,
    "an expression beyond the budget": "(a*|b*)*" * 4_000,
    "an expression that the compiler gives up": "[^a]" * 8_000,
    "an expression with Unicode classes": r"\pL*" * 128,
}
_HARD_NAMES: Final = 20


def _hard(world: CrowdedWorld) -> Asked:
    """Single heartbeats that subscribe by expressions, to topics that these match slowly."""
    for name, regex in _HARD.items():
        yield name, "", partial(_subscribe, world, regex)


def _subscribe(world: CrowdedWorld, regex: str) -> None:
    topics = [
        {"name": "a" * 240 + str(index), "numPartitions": 1, "replicationFactor": 1}
        for index in range(_HARD_NAMES)
    ]
    world.call(ApiKey.CREATE_TOPICS, {"topics": topics})
    fields = {
        "groupId": "hard",
        "memberId": "m",
        "rebalanceTimeoutMs": 60_000,
        "subscribedTopicRegex": regex,
        "topicPartitions": [],
    }
    world.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, fields)
    _wait(world, world.now_ms + _MOST_SLICES)


_TIMERS: Final = {
    "transactions time out": 700_000,
    "all sessions of a classic group end": 2_000_000,
    "offsets and producers expire": 2 * _DAY_MS,
}
"""What passes within so many milliseconds, in this order."""


def _timers(world: CrowdedWorld) -> Asked:
    before_ms = START_MS
    for name, after_ms in _TIMERS.items():
        _wait(world, before_ms)
        yield f"timer: {name}", "", partial(_wait, world, START_MS + after_ms)
        before_ms = START_MS + after_ms


_NAMES: Final = {"broker_id": "1", "name": WIDE, "group_id:path": CROWD, "partition": "0"}
_CHANGES: Final = {
    "POST /v1/brokers/{broker_id}/stop": None,
    "POST /v1/brokers/{broker_id}/pause": None,
    "POST /v1/brokers/{broker_id}/partition": None,
    "POST /v1/topics": {"name": "new", "partitions": 1_000},
    "DELETE /v1/topics/{name}": None,
    "POST /v1/topics/{name}/partitions/{partition}/elect": {"to": 1},
    "POST /v1/groups/{group_id:path}/move-coordinator": {"to": 1},
}
"""What is changed, and the body of the call."""
_REFUSED: Final = 400
_LEFT_OUT: Final = ("/wait", "/events", "{fault_id}")


def _http(world: CrowdedWorld) -> Asked:
    """Paths of the control surface, with names that are there."""
    paths = [route.path for route in ROUTES if route.method == "GET"]
    read = ["/metrics", *(path for path in paths if not path.endswith(_LEFT_OUT))]
    for call, body in {**{f"GET {path}": None for path in read}, **_CHANGES}.items():
        method, path = call.replace("{", "{0[").replace("}", "]}").format(_NAMES).split()
        yield call, "", partial(_call, world, method, path, body)


def _call(world: CrowdedWorld, method: str, path: str, body: object) -> None:
    async def ask() -> None:
        settings = ClusterSettings(profile=DEFAULT_PROFILE)
        server = KafkaServer(settings, VirtualClock(lambda: START_MS))
        server.cluster = world.cluster
        tracing = Tracing(dict, lambda: None)  # type: ignore[arg-type, return-value]
        app = make_app(Control(server, Feed(), tracing, Meter()), Access("127.0.0.1"))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = await client.request(method, path, json=body)
            assert answer.status_code < _REFUSED, answer.text

    asyncio.run(ask())
    world.linger(_LATER_MS)


def main() -> None:
    """Ask, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000)
    parser.add_argument("--api", action="append")
    parser.add_argument("--only", choices=("apis", "hard", "timers", "http"))
    parser.add_argument("--verbose", action="store_true")
    wanted = parser.parse_args()
    world = CrowdedWorld(DEFAULT_PROFILE, wanted.size, _A_DAY)
    gc.freeze()
    slices: dict[str, float] = {}
    asked = {
        "hard": _hard,
        "apis": partial(_apis, apis=wanted.api),
        "http": _http,
        "timers": _timers,
    }
    for kind in (wanted.only,) if wanted.only else asked:
        for name, more, work in asked[kind](world):
            found = longest_ms(work)
            slices[name] = max(slices.get(name, 0.0), round(found, 1))
            if wanted.verbose:
                sys.stderr.write(f"{found:10.1f} {name} {more}\n")
    json.dump(slices, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
