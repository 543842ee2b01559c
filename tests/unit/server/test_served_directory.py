"""`serve --log-dir` as a process: killed, begun again, and asked by a client."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import offset_commit, offset_fetch
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from tests.unit.server.kafka_client import KafkaClient

PATIENCE_S = 60


def command(directory: Path, *more: str) -> list[str]:
    """The command line of a server."""
    serve = [sys.executable, "-m", "coordinator_sim", "serve", "--port", "0", "--no-control"]
    return [*serve, "--topics", "t:2", "--log-dir", str(directory), *more]


@contextmanager
def served(directory: Path, ending: signal.Signals, *more: str) -> Iterator[str]:
    """The address of a server, which ends by that signal."""
    ready = directory.with_name("ready")
    with directory.with_name("server.log").open("ab") as log:
        process = subprocess.Popen(
            command(directory, "--ready-file", str(ready), *more), stdout=log, stderr=log
        )
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        yield str(json.loads(ready.read_text())["bootstrap"])
    finally:
        process.send_signal(ending)
        process.wait(PATIENCE_S)
        ready.unlink(missing_ok=True)
    assert process.returncode in {0, -signal.SIGKILL}


async def committed(client: KafkaClient) -> int:
    """The offset of t-0 of group g."""
    wanted = offset_fetch.OffsetFetchRequest(
        groups=(offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None),)
    )
    answer = await client.ask(wanted, 8)
    assert isinstance(answer, offset_fetch.OffsetFetchResponse)
    return answer.groups[0].topics[0].partitions[0].committed_offset


async def commit(client: KafkaClient, member_id: str, offset: int) -> ErrorCode:
    """Commit an offset of t-0 as the member of group g."""
    request = offset_commit.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=1,
        member_id=member_id,
        topics=(
            offset_commit.OffsetCommitRequestTopic(
                "t",
                partitions=(
                    offset_commit.OffsetCommitRequestPartition(
                        0, offset, -1, committed_metadata=""
                    ),
                ),
            ),
        ),
    )
    answer = await client.ask(request, 7)
    assert isinstance(answer, offset_commit.OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


async def first_life(address: str) -> str:
    """Join and commit; the member id."""
    client = await KafkaClient.connect(address)
    # The offsets topic comes with the first group that is asked for.
    await client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 2)
    member_id = await client.join("g", session_timeout_ms=60_000)
    assert await commit(client, member_id, 41) is ErrorCode.NONE
    await client.close()
    return member_id


async def later_life(address: str, member_id: str, offset: int) -> None:
    """The member goes on as if nothing had happened."""
    client = await KafkaClient.connect(address)
    beat = await client.beat("g", member_id)
    assert isinstance(beat, HeartbeatResponse)
    assert beat.error_code is ErrorCode.NONE
    assert await committed(client) == offset
    assert await commit(client, member_id, offset + 1) is ErrorCode.NONE
    await client.close()


def test_a_group_outlives_a_killed_server(tmp_path: Path) -> None:
    """A member's generation and offsets are there after `kill -9`, and after an orderly end."""
    directory = tmp_path / "data"
    with served(directory, signal.SIGKILL) as address:
        member_id = asyncio.run(first_life(address))
    with served(directory, signal.SIGTERM) as address:
        asyncio.run(later_life(address, member_id, 41))
    with served(directory, signal.SIGTERM) as address:
        asyncio.run(later_life(address, member_id, 42))
    lines = directory.with_name("server.log").read_text().splitlines()
    assert sum("not left in order" in line for line in lines) == 1


def test_a_second_server_is_refused_in_one_line(tmp_path: Path) -> None:
    """The directory has one owner: the other ends with 2 and says why."""
    directory = tmp_path / "data"
    with served(directory, signal.SIGTERM):
        done = subprocess.run(
            command(directory), capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"error: {directory} is in use by another process; stop it or choose another --log-dir"
    ]
    assert (directory / ".kafka_cleanshutdown").exists()


def test_an_unknown_fsync_is_refused(tmp_path: Path) -> None:
    """`--fsync` says always or never."""
    done = subprocess.run(
        command(tmp_path, "--fsync", "often"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "error: --fsync 'often': write always or never\n"


def test_a_damaged_directory_is_served_when_the_loss_is_accepted(tmp_path: Path) -> None:
    """The start ends with 2 and names file and loss; `--accept-loss` says so and goes on."""
    directory = tmp_path / "data"
    with served(directory, signal.SIGTERM) as address:
        asyncio.run(first_life(address))
    files = directory.glob("__consumer_offsets-*/*.log")
    segment = max(files, key=lambda file: file.stat().st_size)
    segment.write_bytes(segment.read_bytes()[:-20])
    for _ in range(2):
        done = subprocess.run(
            command(directory), capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {directory} has lost data that was acknowledged:\n")
        assert f"  {segment} is damaged at byte " in done.stderr
        assert "--accept-loss" in done.stderr
    with served(directory, signal.SIGTERM, "--accept-loss"):
        assert segment.with_name(f"{segment.name}.damaged").exists()
    with served(directory, signal.SIGTERM):
        pass
    lines = directory.with_name("server.log").read_text().splitlines()
    assert sum(f"WARNING lost: {segment} is damaged" in line for line in lines) == 1


def test_a_loss_is_accepted_of_a_directory_only(tmp_path: Path) -> None:
    """`--accept-loss` without a directory is a mistake."""
    words = [sys.executable, "-m", "coordinator_sim", "serve", "--port", "0", "--accept-loss"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: --accept-loss: nothing can be lost without --log-dir DIR\n"
