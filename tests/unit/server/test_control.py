"""The control surface over real sockets."""

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from urllib.parse import quote

import httpx
import msgspec
import pytest
from msgspec import structs
from openapi_spec_validator import validate

from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.server.control.access import Access
from coordinator_sim.server.control.app import make_app
from coordinator_sim.server.control.views import parked_views
from coordinator_sim.server.properties import listeners_of
from coordinator_sim.server.serving import ControlOptions, Ready, ServeOptions, Serving
from coordinator_sim.server.timekeeper import ScaledClock
from coordinator_sim.trace.events import Event, TraceEvent
from tests.unit.server.kafka_client import KafkaClient


class Running:
    """A server under test."""

    def __init__(self, ready: Ready, http: httpx.AsyncClient, serving: Serving) -> None:
        self.ready = ready
        self.http = http
        self.serving = serving
        self.addresses = ready.bootstrap.split(",")

    async def call(self, method: str, path: str, body: object = None, status: int = 200) -> object:
        """The JSON of an answer, which has that status."""
        answer = await self.http.request(method, path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def get(self, path: str, status: int = 200) -> object:
        """The answer to a GET."""
        return await self.call("GET", path, status=status)


WAIT = {"/v1/groups/app/wait": {"timeout_ms": "10"}}
Story = Callable[[Running], Awaitable[None]]


@asynccontextmanager
async def running(options: ServeOptions) -> AsyncIterator[Running]:
    """A server from start to stop."""
    serving = Serving(options)
    ready = await serving.start()
    try:
        async with httpx.AsyncClient(base_url=ready.control or "", timeout=10) as http:
            yield Running(ready, http, serving)
    finally:
        await serving.stop()


def options(brokers: int = 1, clock: str = "wall", token: str = "") -> ServeOptions:
    """A small cluster on free ports."""
    broker_ids = tuple(range(1, brokers + 1))
    return ServeOptions(
        cluster=ClusterSettings(
            broker_ids=broker_ids,
            coordinator=CoordinatorConfig(
                offsets_topic_num_partitions=4, group_initial_rebalance_delay_ms=0
            ),
        ),
        listens=listeners_of(broker_ids, "PLAINTEXT://127.0.0.1:0", ""),
        topics={"orders": 3},
        clock=clock,
        control=ControlOptions(token=token),
    )


def play(story: Story, given: ServeOptions | None = None) -> None:
    """Tell a story about a server."""

    async def told() -> None:
        async with running(options() if given is None else given) as server:
            await asyncio.wait_for(story(server), 20)

    asyncio.run(told())


async def coordinated(server: Running, group_id: str) -> KafkaClient:
    """A client connected to the coordinator of a group, whose topic there is now."""
    now = server.serving.server.now()
    cluster = server.serving.server.cluster
    if "__consumer_offsets" not in cluster.image.topics:
        cluster.topics.create_asked_for("__consumer_offsets", now)
    partition = cluster.image.topics["__consumer_offsets"].partitions
    leader = partition[partition_for(group_id, len(partition))].leader_id
    return await KafkaClient.connect(server.addresses[leader - 1])


def test_openapi_document_is_valid_and_has_every_path() -> None:
    """A validator of OpenAPI finds nothing wrong, and what is said to be there answers."""

    async def story(server: Running) -> None:
        document = await server.get("/v1/openapi.json")
        assert isinstance(document, dict)
        validate(document)
        for path, methods in document["paths"].items():
            if "get" in methods and "{" not in path and path != "/v1/events":
                await server.get(path)

    play(story)


def test_group_is_shown_live() -> None:
    """Members, generation and what is parked, as they are."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        member_id = await client.join("app")
        found = await server.get("/v1/groups/app")
        assert isinstance(found, dict)
        assert (found["state"], found["generation"], found["member_count"]) == ("Stable", 1, 1)
        (member,) = found["members"]
        assert (member["member_id"], member["is_leader"]) == (member_id, True)
        assert member["session_ends_ms"] > 0
        listed = await server.get("/v1/groups")
        assert isinstance(listed, list)
        assert [each["group_id"] for each in listed] == ["app"]
        await server.get("/v1/groups/nobody", status=404)
        await client.close()

    play(story)


def test_wait_ends_when_the_group_is_as_wanted() -> None:
    """A long poll is answered at the moment of the change, or refused at its limit."""

    async def story(server: Running) -> None:
        waiting = asyncio.create_task(
            server.get("/v1/groups/app/wait?state=Stable&members=1&timeout_ms=5000")
        )
        await asyncio.sleep(0.05)
        assert not waiting.done()
        client = await coordinated(server, "app")
        await client.join("app")
        found = await waiting
        assert isinstance(found, dict)
        assert found["generation"] == 1
        refused = await server.get("/v1/groups/app/wait?generation=9&timeout_ms=50", status=408)
        assert isinstance(refused, dict)
        assert "Stable in generation 1 with 1 members" in refused["error"]
        await server.get("/v1/groups/app/wait?state=Happy", status=400)
        await server.get("/v1/groups/app/wait?sate=Stable", status=400)
        await client.close()

    play(story)


def test_virtual_clock_says_what_waits_and_what_fired() -> None:
    """A JoinGroup parked on a frozen clock is listed with its deadline; advancing answers it."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        member_id = await client.join("app")
        other = await coordinated(server, "app")
        joining = asyncio.create_task(other.join("app"))
        await server.get("/v1/groups/app/wait?state=PreparingRebalance")
        clock = await server.get("/v1/clock")
        assert isinstance(clock, dict)
        (parked,) = clock["parked"]
        assert (parked["api"], parked["waits_for"]) == ("JoinGroup", "join")
        assert parked["remaining_ms"] == 60_000
        moved = await server.call("POST", "/v1/clock/advance", {"ms": 60_000})
        assert isinstance(moved, dict)
        fired = [each["event"] for each in moved["fired"]]
        assert fired.index("MEMBER_FAILED") < fired.index("JOIN_COMPLETE") < len(fired)
        assert moved["clock"]["group_ms"] == clock["group_ms"] + 60_000
        assert await joining != member_id
        await server.call("PUT", "/v1/clock", {"clock": "sundial"}, status=409)
        for each in (client, other):
            await each.close()

    play(story, options(clock="virtual"))


def restless() -> ServeOptions:
    """A virtual clock with a deadline in every millisecond: a long advance does not end."""
    given = options(clock="virtual")
    sweeping = structs.replace(given.cluster.coordinator, offsets_retention_check_interval_ms=1)
    return structs.replace(given, cluster=structs.replace(given.cluster, coordinator=sweeping))


def test_others_are_answered_while_the_clock_moves_and_it_is_called_off() -> None:
    """Kafka and HTTP go on, progress is shown, a second advance is refused; then it stops."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        advancing = asyncio.create_task(server.call("POST", "/v1/clock/advance", {"ms": 10**11}))
        shown = []
        async with asyncio.timeout(10):
            while len(shown) < 2:
                clock = await server.get("/v1/clock")
                assert isinstance(clock, dict)
                if clock["advance"] is not None:
                    shown.append(clock["advance"])
        assert shown[0]["from_ms"] + 10**11 == shown[0]["target_ms"] == shown[1]["target_ms"]
        assert shown[0]["from_ms"] <= shown[0]["now_ms"] < shown[1]["now_ms"]
        assert await server.get("/healthz") == {"status": "ok"}
        assert isinstance(await client.beat("app", "nobody"), HeartbeatResponse)
        await client.close()
        for body in ({"ms": 1}, {}):
            refused = await server.call("POST", "/v1/clock/advance", body, status=409)
            assert isinstance(refused, dict)
            assert "is under way" in refused["error"]
        await server.call("PUT", "/v1/clock", {"clock": "wall"}, status=409)
        assert not advancing.done()
        await server.call("POST", "/v1/clock/stop")
        moved = await advancing
        assert isinstance(moved, dict)
        assert (moved["is_there"], moved["clock"]["advance"]) == (False, None)
        await server.call("POST", "/v1/clock/stop", status=409)

    play(story, restless())


def test_reset_ends_an_advance() -> None:
    """A cluster begins anew whatever its clock is in the middle of."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        advancing = asyncio.create_task(server.call("POST", "/v1/clock/advance", {"ms": 10**11}))
        await asyncio.sleep(0.05)
        assert not advancing.done()
        await client.close()
        found = await server.call("POST", "/v1/reset")
        assert isinstance(found, dict)
        moved = await advancing
        assert isinstance(moved, dict)
        assert not moved["is_there"]

    play(story, restless())


@pytest.mark.parametrize("clock", ["scaled 1e308", "scaled 1e7", "scaled nan", "scaled 1e-9"])
def test_clock_out_of_bounds_changes_nothing(clock: str) -> None:
    """The refusal names the bounds; the old clock, health and reset go on."""

    async def story(server: Running) -> None:
        refused = await server.call("PUT", "/v1/clock", {"clock": clock}, status=409)
        assert isinstance(refused, dict)
        assert refused["error"].endswith("wants 0.001 to 1000000")
        found = await server.get("/v1/clock")
        assert isinstance(found, dict)
        assert found["clock"] == "wall"
        await server.get("/healthz")
        await server.call("POST", "/v1/reset")

    play(story)


def test_cluster_that_meets_no_deadlines_is_not_healthy() -> None:
    """Health is an answer about the brokers: 503 with the reason where time does not go on."""

    async def story(server: Running) -> None:
        def broken() -> int:
            raise OverflowError("no such instant")

        keeper = server.serving.server.timekeeper
        sound, keeper.clock = keeper.clock, ScaledClock(lambda: 0, 1)
        keeper.clock._wall = broken
        found = await server.get("/healthz", status=503)
        keeper.clock = sound
        assert isinstance(found, dict)
        assert "no such instant" in found["error"]
        await server.get("/healthz")

    play(story)


@pytest.mark.parametrize("text", ["9" * 5_000, "-" + "9" * 5_000, "1_0", "x", "\u0661"])
def test_wild_sequence_number_is_refused(text: str) -> None:
    """In a query and in the header that browsers send; the stream of events does not break."""

    async def story(server: Running) -> None:
        for path in ("/v1/events", "/v1/trace/events", "/v1/groups/app/wait"):
            name = "members" if path.endswith("wait") else "after"
            answer = await server.http.get(path, params={name: text, **WAIT.get(path, {})})
            assert answer.status_code == 400, answer.text
            assert "wants a whole number" in answer.text
            assert len(answer.text) < 200
        if text.isascii():
            answer = await server.http.get("/v1/events", headers={"last-event-id": text})
            assert answer.status_code == 400

    play(story)


@pytest.mark.parametrize(
    ("directory", "status"), [("a\0b", 400), ("", 400), ("x" * 5_000, 400), ("/proc/x", 409)]
)
def test_trace_that_cannot_be_is_refused(directory: str, status: int) -> None:
    """The reason names the path or its field, and another trace can begin."""

    async def story(server: Running) -> None:
        body = {"directory": directory}
        refused = await server.call("POST", "/v1/trace/start", body, status=status)
        assert isinstance(refused, dict)
        assert ("$.directory" if status == 400 else directory) in refused["error"]
        await server.call("POST", "/v1/trace/start")
        await server.call("POST", "/v1/trace/stop")

    play(story)


def test_short_session_on_a_fast_clock_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Once for a group, with the largest factor that would be safe."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        await client.join("app")
        await client.close()

    play(story, options(clock="scaled 20"))
    (warning,) = [each.getMessage() for each in caplog.records if "session" in each.getMessage()]
    assert warning.endswith("the largest safe factor is 5")


def test_wall_clock_is_not_moved() -> None:
    """What cannot be done is refused with the reason."""

    async def story(server: Running) -> None:
        refused = await server.call("POST", "/v1/clock/advance", {"ms": 5}, status=409)
        assert refused == {"error": "the clock is wall: only a virtual one can be moved"}

    play(story)


def test_fault_rules_come_act_and_go() -> None:
    """A rule changes what a client is told, counts, and can be taken out."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        member_id = await client.join("app")
        rule = {
            "action": {"do": "error", "error": "NOT_COORDINATOR"},
            "match": {"api": "Heartbeat", "group": "app"},
            "times": 1,
        }
        added = await server.call("POST", "/v1/faults", rule, status=201)
        assert isinstance(added, dict)
        told = [await client.beat("app", member_id) for _ in range(2)]
        codes = [each.error_code for each in told if isinstance(each, HeartbeatResponse)]
        assert codes == [ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]
        place = f"/v1/faults/{added['fault_id']}"
        found = await server.get(place)
        assert isinstance(found, dict)
        assert (found["hits"], found["fitting"]) == (1, 1)
        await server.call("DELETE", place)
        await server.get(place, status=404)
        await server.call("POST", "/v1/faults", {"action": {"do": "dance"}}, status=400)
        wrong = {"action": {"do": "drop"}, "match": {"api": "Dance"}}
        await server.call("POST", "/v1/faults", wrong, status=409)
        await server.call("DELETE", "/v1/faults", status=204)
        await client.close()

    play(story)


def test_topics_come_and_go() -> None:
    """A topic is made, seen, refused twice, and deleted."""

    async def story(server: Running) -> None:
        made = await server.call("POST", "/v1/topics", {"name": "t", "partitions": 2}, status=201)
        assert isinstance(made, dict)
        assert [each["leader_id"] for each in made["partitions"]] == [1, 1]
        await server.call("POST", "/v1/topics", {"name": "t"}, status=409)
        await server.call("POST", "/v1/topics", {"name": "no space"}, status=400)
        await server.call("POST", "/v1/topics", {"name": "u", "replication_factor": 3}, status=409)
        listed = await server.get("/v1/topics")
        assert isinstance(listed, list)
        assert [each["name"] for each in listed] == ["orders", "t"]
        await server.call("DELETE", "/v1/topics/t")
        await server.get("/v1/topics/t", status=404)

    play(story)


def test_group_with_any_name_is_reached() -> None:
    """A group's id may have slashes, line ends and escapes; each path finds it all the same."""

    async def story(server: Running) -> None:
        for name in ("a/b", "a\nb", "\x1b[31m\n"):
            client = await coordinated(server, name)
            await client.join(name)
            found = await server.get(f"/v1/groups/{quote(name)}")
            waited = await server.get(f"/v1/groups/{quote(name)}/wait?members=1")
            assert isinstance(found, dict)
            assert isinstance(waited, dict)
            assert found["group_id"] == waited["group_id"] == name
            await client.close()

    play(story)


def test_topic_with_impossible_configs_is_refused() -> None:
    """A broker could never start again with a config that cannot be read."""
    wrong = {"retention.ms": "abc", "no.such.config": "1", "remote.storage.enable": "true"}

    async def story(server: Running) -> None:
        for name, value in wrong.items():
            asked = {"name": "t", "configs": {name: value}}
            await server.call("POST", "/v1/topics", asked, status=400)
        await server.get("/v1/topics/t", status=404)
        right = {"name": "t", "configs": {"retention.ms": "1000"}}
        await server.call("POST", "/v1/topics", right, status=201)
        await server.call("POST", "/v1/brokers/1/restart")

    play(story)


def test_client_that_leaves_within_its_body_is_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    """A connection that ends within its body is not logged as an error."""

    async def story(server: Running) -> None:
        assert server.ready.control is not None
        host, _, port = server.ready.control.removeprefix("http://").partition(":")
        head = f"POST /v1/topics HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n"
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + b"{")
        await writer.drain()
        await server.get("/v1/server")
        writer.close()
        await writer.wait_closed()
        for _ in range(3):
            await server.get("/v1/server")

    play(story)
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def steps_of(work: Callable[[], object]) -> int:
    """How many operations of the interpreter a piece of work takes, garbage collections apart."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def test_cost_of_the_clocks_view_grows_with_the_groups_alone() -> None:
    """Twice and four times as many groups cost twice and four times as much, no product of them."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "g0")
        cluster, steps = server.serving.server.cluster, []
        for number in range(32):
            await client.join(f"g{number}", session_timeout_ms=300_000)
            if number in (7, 15, 31):
                steps.append(steps_of(lambda: parked_views(cluster, 0)))
        few, more, most = steps
        assert (most - more) < 2.2 * (more - few)
        await client.close()

    play(
        story,
        structs.replace(
            options(),
            cluster=structs.replace(
                options().cluster,
                coordinator=CoordinatorConfig(
                    offsets_topic_num_partitions=1, group_initial_rebalance_delay_ms=0
                ),
            ),
        ),
    )


def test_stopped_broker_refuses_connections_until_it_is_back() -> None:
    """The broker's connections close, its port refuses, and after a resume it is where it was."""

    async def story(server: Running) -> None:
        client = await KafkaClient.connect(server.addresses[1])
        stopped = await server.call("POST", "/v1/brokers/2/stop")
        assert isinstance(stopped, dict)
        assert stopped["status"] == "stopped"
        with pytest.raises(asyncio.IncompleteReadError):
            await client.beat("g", "m")
        with pytest.raises(ConnectionRefusedError):
            await KafkaClient.connect(server.addresses[1])
        await server.call("POST", "/v1/brokers/2/stop", status=409)
        await server.call("POST", "/v1/brokers/2/resume")
        again = await KafkaClient.connect(server.addresses[1])
        assert isinstance(await again.beat("g", "m"), HeartbeatResponse)
        await server.call("POST", "/v1/brokers/2/restart")
        await server.call("POST", "/v1/brokers/7/stop", status=404)
        for each in (client, again):
            await each.close()

    play(story, options(brokers=2))


@pytest.mark.parametrize("verb", ["pause", "partition"])
def test_held_broker_answers_when_it_is_released(verb: str) -> None:
    """A request sent meanwhile is worked on afterwards; connections stay open."""

    async def story(server: Running) -> None:
        client = await KafkaClient.connect(server.addresses[0])
        await client.beat("g", "m")
        await server.call("POST", f"/v1/brokers/1/{verb}")
        asked = asyncio.create_task(client.beat("g", "m"))
        late = await KafkaClient.connect(server.addresses[0])
        asked_late = asyncio.create_task(late.beat("g", "m"))
        await asyncio.sleep(0.1)
        assert not asked.done()
        assert not asked_late.done()
        await server.call("POST", "/v1/brokers/1/resume")
        assert isinstance(await asked, HeartbeatResponse)
        assert isinstance(await asked_late, HeartbeatResponse)
        for each in (client, late):
            await each.close()

    play(story, options(brokers=2))


def test_coordinator_of_a_group_moves() -> None:
    """The group goes on at another broker, which knows its member."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        member_id = await client.join("app")
        moved = await server.call("POST", "/v1/groups/app/move-coordinator", {})
        assert isinstance(moved, dict)
        found = await server.get("/v1/groups/app")
        assert isinstance(found, dict)
        assert found["coordinator_id"] == moved["leader_id"]
        other = await coordinated(server, "app")
        beat = await other.beat("app", member_id)
        assert isinstance(beat, HeartbeatResponse)
        assert beat.error_code is ErrorCode.NONE
        for each in (client, other):
            await each.close()

    play(story, options(brokers=2))


def test_reset_is_atomic() -> None:
    """Topics, groups, faults and connections are gone at once; those of the start are there."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        await client.join("app")
        await server.call("POST", "/v1/topics", {"name": "t"}, status=201)
        await server.call("POST", "/v1/faults", {"action": {"do": "drop"}}, status=201)
        shown = await server.call("POST", "/v1/reset")
        assert isinstance(shown, dict)
        assert (shown["topics"], shown["groups"], shown["connections"]) == (1, 0, 0)
        assert await server.get("/v1/faults") == []
        with pytest.raises(asyncio.IncompleteReadError):
            await client.beat("app", "m")
        again = await coordinated(server, "app")
        await again.join("app")
        for each in (client, again):
            await each.close()

    play(story)


async def events_from(server: Running, count: int, headers: dict[str, str]) -> list[dict[str, str]]:
    """The first events of a stream, each as the fields it came in."""
    found: list[dict[str, str]] = []
    async with server.http.stream("GET", "/events", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif fields:
                found.append(fields)
                fields = {}
            if len(found) == count:
                break
    return found


def test_events_are_resumed_behind_the_last_one_seen() -> None:
    """Numbers go up by one, also over a break of the connection."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        await client.join("app")
        first = await events_from(server, 3, {"last-event-id": "0"})
        assert [each["id"] for each in first] == ["1", "2", "3"]
        rest = await events_from(server, 2, {"last-event-id": "3"})
        assert [each["id"] for each in rest] == ["4", "5"]
        assert {each["event"] for each in first + rest} == {"group"}
        assert json.loads(rest[0]["data"])["seq"] == 4
        await client.close()

    play(story)


def test_gap_in_the_events_is_announced() -> None:
    """Who asks for what is not kept any more is told from where on there is something."""

    async def story(server: Running) -> None:
        for number in range(10_005):
            server.serving.control.tell("topic", "CREATED", topic=str(number))
        gap, item = await events_from(server, 2, {"last-event-id": "2"})
        assert (gap["event"], json.loads(gap["data"])) == ("gap", {"after": 2, "from": 6})
        assert item["id"] == "6"

    play(story)


def test_a_backlog_of_events_is_sent_in_slices() -> None:
    """Hundreds of clients that connect anew would otherwise stop the server for seconds."""

    async def story(server: Running) -> None:
        for number in range(1_000):
            server.serving.control.tell("topic", "CREATED", topic=str(number))
        stream = make_app(server.serving.control, Access("127.0.0.1"))
        sent: asyncio.Queue[object] = asyncio.Queue()
        headers = [(b"host", b"127.0.0.1"), (b"last-event-id", b"0")]
        scope = {"type": "http", "method": "GET", "path": "/events", "headers": headers}
        scope |= {"query_string": b"", "root_path": ""}
        streaming = asyncio.create_task(stream(scope, asyncio.Event().wait, sent.put))  # type: ignore[arg-type]
        await sent.get()
        await asyncio.sleep(0)
        assert sent.qsize() < 5
        streaming.cancel()

    play(story)


def test_metrics_are_in_the_text_format() -> None:
    """Every line is a comment or a sample; requests and groups are counted."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        await client.join("app")
        text = (await server.http.get("/metrics")).text
        samples = dict(
            line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")
        )
        assert samples['coordinator_sim_requests_total{api="JOIN_GROUP"}'] == "1"
        assert samples['coordinator_sim_groups{state="Stable"}'] == "1"
        assert samples["coordinator_sim_rebalances_total"] == "1"
        name = "coordinator_sim_request_duration_seconds_bucket"
        assert samples[f'{name}{{api="JOIN_GROUP",le="+Inf"}}'] == "1"
        assert all(float(value) >= 0 for value in samples.values())
        await client.close()

    play(story)


def test_trace_begins_and_ends_on_demand(tmp_path: Path) -> None:
    """What is served in between is a whole trace, and can be downloaded."""

    async def story(server: Running) -> None:
        where = str(tmp_path / "run")
        await server.get("/v1/trace/events.jsonl", status=409)
        await server.call("POST", "/v1/trace/start", {"directory": where})
        await server.call("POST", "/v1/trace/start", {}, status=409)
        client = await coordinated(server, "app")
        member_id = await client.join("app")
        await client.beat("app", member_id)
        await client.leave("app", member_id)
        ended = await server.call("POST", "/v1/trace/stop")
        assert isinstance(ended, dict)
        lines = (await server.http.get("/v1/trace/events.jsonl")).text.splitlines()
        assert len(lines) == ended["events"]
        run = read_run(tmp_path / "run")
        assert run.info.options == {"clock": "wall", "group.initial.rebalance.delay.ms": "0"}
        told = [each.event for each in run.events()]
        assert told.index(Event.JOIN_COMPLETE) < told.index(Event.HEARTBEAT)
        assert told.index(Event.HEARTBEAT) < told.index(Event.GROUP_EMPTY)
        await client.close()

    play(story)


def test_what_groups_told_is_read_from_a_number_on() -> None:
    """With all columns, as a trace has them; then only what is new."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        member_id = await client.join("app")
        told = await server.get("/v1/trace/events?after=0")
        assert isinstance(told, dict)
        events = msgspec.convert(told["events"], list[TraceEvent])
        assert told["is_whole"]
        assert [each.member_id for each in events if each.event is Event.JOIN_RESP][-1] == member_id
        await client.leave("app", member_id)
        later = await server.get(f"/v1/trace/events?after={told['last_seq']}")
        assert isinstance(later, dict)
        assert [each["event"] for each in later["events"]][:2] == ["LEAVE_REQ", "MEMBER_LEFT"]
        await client.close()

    play(story)


def test_kept_groups_are_shown_and_traced_from_the_first_moment(tmp_path: Path) -> None:
    """A server that goes on with what its directory has tells of the groups that it loads."""

    async def first(server: Running) -> None:
        client = await coordinated(server, "app")
        await client.join("app")
        await client.close()

    async def second(server: Running) -> None:
        listed = await server.get("/v1/groups")
        assert isinstance(listed, list)
        assert [each["group_id"] for each in listed] == ["app"]

    kept = structs.replace(options(), log_dir=tmp_path / "log")
    play(first, kept)
    play(second, structs.replace(kept, trace=tmp_path / "run"))
    told = [each.event for each in read_run(tmp_path / "run").events()]
    assert told.index(Event.LOAD_START) < told.index(Event.GROUP_LOADED)


def test_connections_are_listed_and_closed() -> None:
    """A connection has a number; closing it by that number ends it."""

    async def story(server: Running) -> None:
        client = await KafkaClient.connect(server.addresses[0])
        await client.beat("g", "m")
        listed = await server.get("/v1/connections")
        assert isinstance(listed, list)
        (each,) = listed
        await server.call("DELETE", f"/v1/connections/{each['connection']}", status=204)
        with pytest.raises(asyncio.IncompleteReadError):
            await client.beat("g", "m")
        await server.call("DELETE", "/v1/connections/999", status=404)
        rule = {"action": {"do": "drop"}, "match": {"connection": each["connection"]}}
        refused = await server.call("POST", "/v1/faults", rule, status=409)
        assert isinstance(refused, dict)
        assert "it is closed, and its number is not used again" in refused["error"]
        await client.close()

    play(story)


def test_page_of_another_site_may_not_call() -> None:
    """Origin and Host are looked at before anything is done."""

    async def story(server: Running) -> None:
        evil = await server.http.post("/v1/reset", headers={"origin": "http://evil.example"})
        assert evil.status_code == 403
        rebound = await server.http.get("/v1/groups", headers={"host": "evil.example"})
        assert rebound.status_code == 403
        own = await server.http.get("/v1/groups", headers={"origin": server.ready.control or ""})
        assert own.status_code == 200

    play(story)


def test_token_is_asked_for_where_one_is_set() -> None:
    """Health is open; everything else wants the token."""

    async def story(server: Running) -> None:
        assert (await server.http.get("/healthz")).status_code == 200
        assert (await server.http.get("/v1/groups")).status_code == 401
        given = {"authorization": "Bearer s3cret"}
        assert (await server.http.get("/v1/groups", headers=given)).status_code == 200
        wrong = {"authorization": "Bearer other"}
        assert (await server.http.get("/v1/groups", headers=wrong)).status_code == 401
        assert (await server.http.get("/v1/groups?access_token=s3cret")).status_code == 200

    play(story, options(token="s3cret"))  # noqa: S106 - of this test alone


def test_listener_off_the_loopback_address_wants_a_token() -> None:
    """Without one it is not even started."""
    with pytest.raises(ConfigError, match="--control-token"):
        Access("0.0.0.0")  # noqa: S104 - what is refused
