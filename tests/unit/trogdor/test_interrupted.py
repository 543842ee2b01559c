"""An agent that runs one task and is interrupted takes back what it did."""

import json
import signal
import subprocess
import sys
from pathlib import Path

NODES = {"near": {"hostname": "localhost"}, "far": {"hostname": "localhost"}}
PARTITION = {
    "class": "org.apache.kafka.trogdor.fault.NetworkPartitionFaultSpec",
    "durationMs": 600_000,
    "partitions": [["near"], ["far"]],
}


def test_an_interrupted_task_undoes_its_fault(tmp_path: Path) -> None:
    """Ctrl-C while a partition lasts: its rule goes, the task has not succeeded."""
    configuration = tmp_path / "trogdor.json"
    platform = "org.apache.kafka.trogdor.basic.BasicPlatform"
    configuration.write_text(json.dumps({"platform": platform, "nodes": NODES}))
    arguments = ("trogdor", "agent", "-c", str(configuration), "-n", "near")
    command = (sys.executable, "-m", "coordinator_sim", *arguments, "--exec", json.dumps(PARTITION))
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        for line in agent.stdout:
            said.append(line)
            if "-A INPUT" in line:
                agent.send_signal(signal.SIGINT)
    assert agent.returncode == 1
    assert sum("-A INPUT" in line for line in said) == 1
    assert sum("-D INPUT" in line for line in said) == 1
    assert said[-1] == "The task was stopped before its end.\n"
