"""Streams groups of a served cluster: what `ctl` shows, and what the trace says later."""

from pathlib import Path

from coordinator_sim.kafka.api_keys import ApiKey
from tests.command_line import run_here
from tests.unit.cli.test_serve import ask, ctl, serving

QUICK = (
    *("--port", "0", "--topics", "in:2", "--set", "offsets.topic.num.partitions=1"),
    *("--set", "group.streams.initial.rebalance.delay.ms=0"),
)


def streams_beat(address: str, member_id: str, epoch: int) -> dict[str, object]:
    """The answer to a heartbeat of a member of the streams group `app`; epoch 0 joins."""
    joins = epoch == 0
    topology = {"epoch": 0, "subtopologies": [{"subtopologyId": "0", "sourceTopics": ["in"]}]}
    body = {
        "groupId": "app",
        "memberId": member_id,
        "memberEpoch": epoch,
        "rebalanceTimeoutMs": 5_000 if joins else -1,
        "topology": topology if joins else None,
        "activeTasks": [] if joins else None,
        "standbyTasks": [] if joins else None,
        "warmupTasks": [] if joins else None,
        "processId": "p" if joins else None,
    }
    return ask(address, ApiKey.STREAMS_GROUP_HEARTBEAT, 0, body)


def test_a_streams_group_is_shown_and_explained(tmp_path: Path) -> None:
    """The control surface lists it with what members run; `explain` tells its epochs.

    The segments of its offsets topic tell the same epochs, but not how a member without commits
    went.
    """
    trace, logs, read = tmp_path / "run", tmp_path / "logs", tmp_path / "read"
    with serving(*QUICK, "--trace", trace, "--log-dir", logs) as ready:
        address = ready["bootstrap"].split(",")[0]
        ask(address, ApiKey.FIND_COORDINATOR, 4, {"keyType": 0, "coordinatorKeys": ["app"]})
        joined = streams_beat(address, "m1", 0)
        assert joined["errorCode"] == 0, joined
        listed = ctl(ready["control"], "groups")
        assert "app" in listed
        shown = ctl(ready["control"], "group", "app")
        assert "0_0" in shown
        assert "0_1" in shown
        streams_beat(address, "m1", -1)
    told = run_here("explain", str(trace), "app").stdout
    assert "epochs 2 to 3" in told
    assert "assignor server:sticky" in told
    assert "Causes: MEMBER_JOINED 1, MEMBER_LEFT 1" in told
    (folder,) = logs.rglob("__consumer_offsets-0")
    assert run_here("ingest", str(folder), "--out", str(read)).returncode == 0
    stored = run_here("explain", str(read), "app").stdout
    assert "epochs 2 to 3" in stored
    assert "assignor server:sticky" in stored
    assert "Causes: MEMBER_JOINED 1, UNKNOWN 1" in stored
    assert "gone: m1 left or failed" in stored
    refused = run_here("replay", str(trace))
    assert "app is a streams group; coordinator-sim explain" in refused.stderr
