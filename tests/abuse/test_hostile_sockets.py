"""Sockets used badly, against a whole server: it lives, answers others, and lets go."""

from tests.abuse import hostile_sockets

GROWTH_KB = 150_000


def test_abused_server_answers_others_and_lets_go() -> None:
    """Whatever is done over sockets, its files and memory come back."""
    with hostile_sockets.served("--set", "group.initial.rebalance.delay.ms=100") as server:
        fds, rss_kb = server.fd_count(), server.rss_kb()
        abuse(server, 1)
        assert server.settles_at(fds)
        assert server.rss_kb() - rss_kb < GROWTH_KB
        lines = server.log_lines()
        assert not [line for line in lines if "Traceback" in line or "met a bug" in line]


def test_connection_that_is_ended_has_one_line_in_the_log() -> None:
    """Every wrong length ends one connection, and the log says so once."""
    with hostile_sockets.served() as server:
        before = len(server.log_lines())
        hostile_sockets.send_lengths(server)

        lines = server.log_lines()[before:]

    assert len(lines) == 4
    assert all("a request of" in line for line in lines)


def abuse(server: hostile_sockets.Served, scale: int) -> None:
    """Everything, in small or in full."""
    ended = hostile_sockets.send_spoilt(server, 2_000 * scale, seed=2)
    assert ended > 100
    hostile_sockets.dribble(server)
    hostile_sockets.pipeline(server, 1_000)
    hostile_sockets.never_read(server, 5 * scale)
    hostile_sockets.flood(server, 500 * scale)
    held = hostile_sockets.stay_half_way(server, 200 * scale)
    server.check()
    for each in held:
        each.close()
