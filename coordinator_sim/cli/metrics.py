"""What each broker's metrics showed at the end of a run: into its directory, and as a table."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from coordinator_sim.trace.schema import METRICS_NAME

if TYPE_CHECKING:
    from coordinator_sim.coordinator.metrics import CoordinatorMetrics


def write_metrics(directory: Path, brokers: "dict[int, CoordinatorMetrics]") -> None:
    """Write them as `metrics.json`: by broker id, then by Kafka's names."""
    from coordinator_sim.coordinator.metrics import KAFKA_NAMES

    shown = {
        str(broker_id): {name: getattr(metrics, field) for field, name in KAFKA_NAMES.items()}
        for broker_id, metrics in brokers.items()
    }
    path = directory / METRICS_NAME
    path.write_bytes(msgspec.json.format(msgspec.json.encode(shown)) + b"\n")


def print_metrics(directory: Path) -> None:
    """Print the `metrics.json` of a run directory, a column a broker."""
    from rich import box
    from rich.table import Table

    from coordinator_sim.cli.console import PrintableConsole

    path = directory / METRICS_NAME
    brokers = msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, int]])
    table = Table("metric", box=box.SIMPLE_HEAD)
    for broker_id in brokers:
        table.add_column(f"broker {broker_id}", justify="right")
    for name in next(iter(brokers.values()), {}):
        table.add_row(name, *(str(shown[name]) for shown in brokers.values()))
    PrintableConsole(highlight=False).print(table)
