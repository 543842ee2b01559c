"""The metrics that a simulated run leaves beside its trace."""

import json
from pathlib import Path

from coordinator_sim.cli.run import prepare
from coordinator_sim.cli.simulation import simulate
from coordinator_sim.trace.schema import METRICS_NAME


def test_a_run_leaves_the_metrics_of_its_brokers(tmp_path: Path) -> None:
    """One broker has the group, and counted its rebalances and commits."""
    simulation = prepare("member-crash", 0, [], assignor="", profile="")

    simulate(simulation, tmp_path, trace_format="jsonl")

    brokers = json.loads((tmp_path / METRICS_NAME).read_text(encoding="utf-8"))
    (leading,) = [metrics for metrics in brokers.values() if metrics["NumGroups"]]
    assert (leading["NumGroupsStable"], leading["group-completed-rebalance-count"]) == (1, 2)
    assert leading["offset-commit-count"] > 0
