"""How fast broker logs are read: lines per CPU-second, beside one plain regex over the same lines.

Run with `python benchmarks/ingest.py`. The lines are made here, in the wording of Kafka 3.9.
"""

import re
import time
from collections.abc import Callable
from datetime import UTC

from coordinator_sim.logtext.reading.broker_log import parse_broker_log

LINES = 100_000
GROUPS = 50
LOGGER = "kafka.coordinator.group.GroupCoordinator"
SCAN = re.compile(r"^\[(.*?)\] (\w+) (.*) \((.*)\)$")


def coordinator_lines(count: int) -> list[str]:
    """Rebalances of many groups: each four lines, of four different messages."""
    lines: list[str] = []
    for index in range(count // 4):
        group, generation = f"group-{index % GROUPS}", index // GROUPS
        at = f"[2024-05-06 {index // 3_600 % 24:02}:{index // 60 % 60:02}:{index % 60:02},250] INFO"
        member = f"consumer-{index}-5f0c6c2e-0000-4000-8000-{index:012}"
        lines += [
            (
                f"{at} [GroupCoordinator 1]: Member {member} in group {group} has failed, "
                f"removing it from the group ({LOGGER})\n"
            ),
            (
                f"{at} [GroupCoordinator 1]: Preparing to rebalance group {group} in state "
                f"PreparingRebalance with old generation {generation} (__consumer_offsets-3) "
                f"(reason: removing member {member} on heartbeat expiration) ({LOGGER})\n"
            ),
            (
                f"{at} [GroupCoordinator 1]: Stabilized group {group} generation {generation + 1} "
                f"(__consumer_offsets-3) with 3 members ({LOGGER})\n"
            ),
            (
                f"{at} [GroupCoordinator 1]: Assignment received from leader {member} for group "
                f"{group} for generation {generation + 1}. The group has 3 members, 0 of which are "
                f"static. ({LOGGER})\n"
            ),
        ]
    return lines


def other_lines(count: int) -> list[str]:
    """What a broker logs about its partitions: nothing for a trace."""
    return [
        f"[2024-05-06 12:{index // 60 % 60:02}:{index % 60:02},250] INFO [UnifiedLog "
        f"partition=orders-{index % 64}, dir=/var/lib/kafka] Rolled new log segment at offset "
        f"{index * 1000} in 2 ms. (kafka.log.UnifiedLog)\n"
        for index in range(count)
    ]


def lines_per_second(work: Callable[[list[str]], int], lines: list[str]) -> tuple[float, int]:
    """Lines per CPU-second of this process, and what the work found."""
    started = time.process_time()
    found = work(lines)
    return len(lines) / (time.process_time() - started), found


def main() -> None:
    """Print both rates, each with the peer's and their ratio."""
    for name, lines in (
        ("coordinator lines", coordinator_lines(LINES)),
        ("other lines", other_lines(LINES)),
    ):
        peer, _ = lines_per_second(matched, lines)
        rate, events = lines_per_second(parsed, lines)
        print(
            f"{name}: {rate:,.0f} lines/CPU-s ({events} events), one regex {peer:,.0f}, "
            f"ratio {rate / peer:.3f}"
        )


def matched(lines: list[str]) -> int:
    """The peer: one search of one pattern in each line; how many match."""
    return sum(1 for line in lines if SCAN.search(line))


def parsed(lines: list[str]) -> int:
    """The number of events that the importer finds."""
    return sum(1 for _ in parse_broker_log(lines, source_ref="bench", tz=UTC))


if __name__ == "__main__":
    main()
