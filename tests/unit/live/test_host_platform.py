"""The host of an agent."""

import asyncio
from pathlib import Path

import pytest

from coordinator_sim.live.trogdor.host_platform import Allowed, HostPlatform
from coordinator_sim.trogdor.topology import topology_of


def listed(allowed: Allowed) -> str | None:
    """What a ProcessStop is told of processes."""

    async def ask() -> str | None:
        platform = HostPlatform("n", topology_of({"n": {}}), allowed, lambda _line: None)
        platform.processes[7] = "workload t"
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        platform.run(("jcmd",), lambda output, _error: answer.set_result(output))
        return await answer

    return asyncio.run(ask())


def test_own_processes_are_listed_beside_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those where others are not allowed, or there is no jcmd."""
    monkeypatch.setenv("PATH", str(tmp_path))
    everything = Allowed(any_process=True)
    assert listed(everything) == "7 workload t"

    jcmd = tmp_path / "jcmd"
    jcmd.write_text("#!/bin/sh\necho '5 kafka.Kafka'\n")
    jcmd.chmod(0o755)
    assert listed(everything) == "5 kafka.Kafka\n7 workload t"
    assert listed(Allowed()) == "7 workload t"
