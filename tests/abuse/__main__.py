"""`python -m tests.abuse [--full]`: the abuse tests in their full size, with figures."""

import sys
import tempfile
import time
from pathlib import Path

from tests.abuse.beside import Ordeal, rss_kb
from tests.abuse.hostile_sockets import served
from tests.abuse.killed_server import KilledServer
from tests.abuse.many import groups, members_of_one_group
from tests.abuse.test_hostile_sockets import abuse

FULL = {"frames": 1_000_000, "scale": 10, "kills": 200, "members": 10_000, "groups": 100_000}
SMALL = {"frames": 100_000, "scale": 1, "kills": 20, "members": 1_000, "groups": 10_000}


def main(*, full: bool) -> None:
    """Run all; an assertion ends it."""
    sizes = FULL if full else SMALL
    ordeal, began = Ordeal(seed=77), time.process_time()
    ordeal.run(sizes["frames"])
    assert not ordeal.bugs, ordeal.bugs
    _say(
        f"{ordeal.sent:,} frames on {ordeal.connections:,} connections, {ordeal.answers:,} answers,"
        f" {time.process_time() - began:.0f} CPU-s, RSS {rss_kb() / 1e3:.0f} MB; slowest frame"
        f" {ordeal.slowest_frame[0] * 1e3:.0f} ms, slowest healthy answer"
        f" {ordeal.slowest_healthy_s * 1e3:.0f} ms; left: {dict(ordeal.left)}"
    )
    _say(f"members: {members_of_one_group(sizes['members'])}")
    _say(f"groups: {groups(sizes['groups'])}")
    with served("--set", "group.initial.rebalance.delay.ms=100") as server:
        fds, before_kb = server.fd_count(), server.rss_kb()
        abuse(server, sizes["scale"])
        assert server.settles_at(fds)
        _say(
            f"sockets: {(server.rss_kb() - before_kb) / 1e3:.0f} MB grown, files back to {fds},"
            f" slowest healthy answers {server.slowest_s:.2f} s"
        )
    with tempfile.TemporaryDirectory() as folder:
        killed = KilledServer(Path(folder) / "log", seed=1)
        for _ in range(sizes["kills"]):
            killed.live()
        _say(f"{sizes['kills']} kills, {killed.acknowledged:,} acknowledged, none lost")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main(full="--full" in sys.argv[1:])
