"""The metrics that a simulated run leaves beside its trace."""

import json
from pathlib import Path

import pytest

from coordinator_sim.cli.metrics import print_metrics
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


def test_the_metrics_are_printed_with_a_column_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader sees who has the group, and how often it rebalanced."""
    (tmp_path / METRICS_NAME).write_text('{"1": {"NumGroups": 0}, "2": {"NumGroups": 1}}')

    print_metrics(tmp_path)

    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["NumGroups", "0", "1"] in printed
