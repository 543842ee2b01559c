"""Who may call Trogdor's daemons, what they run, and that they end."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim.live.trogdor import host_work
from coordinator_sim.live.trogdor.daemons import serve_agent, serve_coordinator
from coordinator_sim.live.trogdor.host_platform import Allowed, HostPlatform
from coordinator_sim.live.trogdor.host_work import work_on
from coordinator_sim.live.trogdor.loop_clock import LoopClock
from coordinator_sim.trogdor.agent import Agent, Progress, Work
from coordinator_sim.trogdor.contract import Quirks, StartWork, WorkerOver
from coordinator_sim.trogdor.string_expander import InvalidName
from coordinator_sim.trogdor.topic_specs import PartitionsSpec, TopicsSpec
from coordinator_sim.trogdor.topology import topology_of
from coordinator_sim.trogdor.workload_specs import ConsumeBenchSpec, ExternalCommandSpec

TOKEN = "s3cret"  # noqa: S105 - of these tests alone
BEARER = {"authorization": f"Bearer {TOKEN}"}
MINUTE_MS = 60_000
NO_OP = {"class": "org.apache.kafka.trogdor.task.NoOpTaskSpec", "durationMs": MINUTE_MS}
PLATFORM = "org.apache.kafka.trogdor.basic.BasicPlatform"


def refusal(served: asyncio.Task[None]) -> BaseException:
    """Why an agent was not served."""
    return served.exception() or AssertionError("ended before it was ready")


@asynccontextmanager
async def agent_on(hostname: str, allowed: Allowed) -> AsyncIterator[int]:
    """An agent in this process; its port."""
    node = {"hostname": hostname, "trogdor.agent.port": 0}
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    served = asyncio.create_task(
        serve_agent(
            topology_of({"n": node}),
            "n",
            quirks=Quirks.KAFKA,
            allowed=allowed,
            told=lambda _line: None,
            ready=port.set_result,
        )
    )
    served.add_done_callback(
        lambda done: None if port.done() else port.set_exception(refusal(done))
    )
    yield await port
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(served, 20)


def statuses(hostname: str, allowed: Allowed, *calls: dict[str, str]) -> list[int]:
    """The statuses of `GET /agent/status` with these headers."""

    async def play() -> list[int]:
        async with agent_on(hostname, allowed) as port, httpx.AsyncClient(trust_env=False) as http:
            url = f"http://127.0.0.1:{port}/agent/status"
            mine = [{"origin": f"http://127.0.0.1:{port}"}, {"host": f"localhost:{port}"}]
            return [
                (await http.get(url, headers=headers)).status_code for headers in (*mine, *calls)
            ]

    return asyncio.run(play())


def test_a_page_of_another_site_gets_no_answer_of_an_agent() -> None:
    """Its name resolves to this host, or its script calls across sites."""
    rebound, across = {"host": "evil.example:8888"}, {"origin": "http://evil.example"}
    assert statuses("localhost", Allowed(), rebound, across) == [200, 200, 403, 403]


def test_an_agent_off_the_loopback_address_wants_its_token() -> None:
    """Without one it is not even started."""
    wrong = {"authorization": "Bearer other"}
    found = statuses("0.0.0.0", Allowed(token=TOKEN), wrong, BEARER)  # noqa: S104 - with a token
    assert found == [401, 401, 401, 200]
    with pytest.raises(ConfigError, match="node n on node1\\.example wants --control-token"):
        statuses("node1.example", Allowed())


def test_a_coordinator_sends_its_token_to_its_agents() -> None:
    """A task runs on an agent that wants a token, and its own callers need it, too."""

    async def play() -> None:
        async with agent_on("localhost", Allowed(token=TOKEN)) as agent_port:
            nodes = {"n": {"trogdor.agent.port": agent_port}, "c": {"trogdor.coordinator.port": 0}}
            port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            coordinator = asyncio.create_task(
                serve_coordinator(
                    topology_of(nodes),
                    "c",
                    quirks=Quirks.FIXED,
                    told=lambda _line: None,
                    ready=port.set_result,
                    token=TOKEN,
                )
            )
            url = f"http://127.0.0.1:{await port}/coordinator"
            async with httpx.AsyncClient(trust_env=False) as http:
                assert (await http.get(f"{url}/tasks")).status_code == 401
                spec = {**NO_OP, "startMs": int(time.time() * 1_000)}
                body = {"id": "t", "spec": spec}
                await http.post(f"{url}/task/create", json=body, headers=BEARER)
                for _ in range(500):
                    state = (await http.get(f"{url}/tasks/t", headers=BEARER)).json()
                    if state.get("status") == "active":
                        break
                    await asyncio.sleep(0.02)
                assert (state["state"], state["status"]) == ("RUNNING", "active")
                await http.put(f"{url}/shutdown", json={}, headers=BEARER)
            await asyncio.wait_for(coordinator, 20)

    asyncio.run(play())


def command_spec(script: str, **more: int) -> ExternalCommandSpec:
    """A task that runs a script of Python."""
    return ExternalCommandSpec(
        command_node="n", command=(sys.executable, "-c", script), duration_ms=MINUTE_MS, **more
    )


async def begun(spec: ExternalCommandSpec, allowed: Allowed) -> tuple[Agent, list[WorkerOver]]:
    """An agent on which a command has begun, and where it says that the worker is over."""
    platform = HostPlatform("n", topology_of({"n": {}}), allowed, lambda _line: None)

    def work(start: StartWork, progress: Progress) -> Work:
        return work_on(platform, start, progress)

    agent = Agent(LoopClock(asyncio.get_running_loop()), work)
    over: list[WorkerOver] = []
    agent.over = over.append
    answered = asyncio.Event()
    agent.create_worker(1, "t", replace(spec, start_ms=agent.now_ms), answered.set)
    await answered.wait()
    return agent, over


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for half a minute."""
    for _ in range(1_500):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise AssertionError


def test_a_command_is_refused_by_an_agent_that_allows_none(tmp_path: Path) -> None:
    """The worker is over with one line that names the option."""
    spec = command_spec(f"open({str(tmp_path / 'ran')!r}, 'w')")

    async def play() -> list[WorkerOver]:
        _, over = await begun(spec, Allowed())
        return over

    (over,) = asyncio.run(play())
    assert over.error == (
        f"worker.start() exception: this agent runs no commands ({sys.executable}): start it with "
        "--allow-commands"
    )
    assert not (tmp_path / "ran").exists()


def test_a_worker_whose_child_holds_its_output_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command was killed; what it started lives on, and is not waited for."""
    monkeypatch.setattr(host_work, "_LAST_OUTPUT_S", 0.2)
    script = (
        "import json, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'])\n"
        "print(json.dumps({'status': 'up'}), flush=True)\n"
        "time.sleep(60)\n"
    )

    async def play() -> float:
        spec = command_spec(script, shutdown_grace_period_ms=100)
        agent, over = await begun(spec, Allowed(commands=True))
        await until(lambda: agent.workers()[1].status == "up")
        stopped_s = time.monotonic()
        agent.stop_worker(1)
        await until(lambda: bool(over))
        return time.monotonic() - stopped_s

    assert asyncio.run(play()) < 10


def test_sigterm_ends_an_agent_whose_worker_ignores_it(tmp_path: Path) -> None:
    """The grace period of the task is an hour, the patience of the agent is a second."""
    configuration = tmp_path / "trogdor.json"
    nodes = {"n": {"hostname": "localhost", "trogdor.agent.port": 0}}
    configuration.write_text(json.dumps({"platform": PLATFORM, "nodes": nodes}))
    words = ["trogdor", "agent", "-c", str(configuration), "-n", "n", "--allow-commands"]
    program = (
        "import sys\n"
        "from coordinator_sim.live.trogdor import daemons\n"
        "from coordinator_sim.cli.main import app\n"
        "daemons._STOP_PATIENCE_S = 1.0\n"
        f"app({words!r})\n"
    )
    stubborn = (
        "import json, os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(json.dumps({'status': os.getpid()}), flush=True)\n"
        "time.sleep(60)\n"
    )
    spec = {
        "class": "org.apache.kafka.trogdor.workload.ExternalCommandSpec",
        "startMs": int(time.time() * 1_000),
        "durationMs": MINUTE_MS,
        "commandNode": "n",
        "command": [sys.executable, "-c", stubborn],
        "shutdownGracePeriodMs": 3_600_000,
    }
    with subprocess.Popen(
        (sys.executable, "-c", program), stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        port = agent.stdout.readline().split()[-1]
        base = f"http://localhost:{port}/agent"
        body = {"workerId": 1, "taskId": "t", "spec": spec}
        httpx.post(f"{base}/worker/create", json=body, trust_env=False, timeout=20)
        pid = None
        while pid is None:
            workers = httpx.get(f"{base}/status", trust_env=False).json()["workers"]
            pid = workers["1"]["status"]
            time.sleep(0.02)
        agent.send_signal(signal.SIGTERM)
        rest, _ = agent.communicate(timeout=20)
    assert agent.returncode == 1
    assert rest == "ended with work that had not stopped after 1 s\n"
    last_s = time.monotonic() + 20
    while is_running(pid):
        assert time.monotonic() < last_s, "the worker's process outlives the agent"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie; a signal takes a moment to reach it."""
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("foo[1-30000000]",), "'foo\\[1-30000000\\]' brings the topic names to 30000000 of"),
        (tuple(f"{n}[1-10000]" for n in range(50)), "to 110000 of"),
        (("x" * 1_000_000 + "[1-99]",), "the most are 100000 of 33554432: name a smaller range"),
        (("foo[1-" + "9" * 5_000 + "]",), 'For input string: "999'),
    ],
)
def test_too_many_topic_names_are_refused_before_they_are_made(
    names: tuple[str, ...], problem: str
) -> None:
    """One range, many ranges, long names, a long number: one line says the bound."""
    with pytest.raises(InvalidName, match=problem):
        TopicsSpec(topics=dict.fromkeys(names, PartitionsSpec())).materialize()
    with pytest.raises(InvalidName, match=problem):
        ConsumeBenchSpec(active_topics=names).materialize_topics()


def test_too_many_partitions_are_refused_before_they_are_numbered() -> None:
    """Of one topic, or of all topics of a range together."""
    for name, number in (("foo", 2**31 - 1), ("foo[1-1001]", 1_000)):
        spec = TopicsSpec(topics={name: PartitionsSpec(num_partitions=number)})
        with pytest.raises(InvalidName, match="partitions; the most of all topics are 1000000"):
            spec.materialize()


def test_ranges_that_multiply_are_refused_before_they_are_made() -> None:
    """A ConsumeBench expands every range of a name."""
    with pytest.raises(InvalidName, match="brings the topic names to 99980001"):
        ConsumeBenchSpec(active_topics=("a[1-9999][1-9999]",)).materialize_topics()
