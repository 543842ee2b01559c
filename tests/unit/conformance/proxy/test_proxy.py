"""The command before served clusters, correct ones and broken ones."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_sim_conformance.cli.main import app, main
from coordinator_sim_conformance.proxy.rules import RULES
from coordinator_sim_pytest.server import QUICK, ServerKind, ServerProcess
from tests.command_line import run_here
from tests.proxied import logged, proxied, with_aiokafka

pytest.importorskip("kio")
pytest.importorskip("uvicorn")

CASES = ("JOIN-034", "SYNC-LEFT-OUT", "SYNC-OLD-GENERATION")
BROKEN = [
    ("followers-see-members", "PX-JOIN-03", "JOIN-034"),
    ("generation-stands-still", "PX-JOIN-01", "JOIN-034"),
    ("old-assignment-survives", "PX-SYNC-01", "SYNC-LEFT-OUT"),
    ("any-generation-syncs", "PX-FENCE-01", "SYNC-OLD-GENERATION"),
]
"""A bug, the rule that it breaks, and a case that brings it about."""


def server(*bugs: str, brokers: int = 1) -> ServerProcess:
    """A served cluster, as it is or with a fault."""
    settings = tuple(QUICK.items())
    return ServerProcess(ServerKind(profile="4.4", settings=settings, bugs=bugs, brokers=brokers))


def played(address: str, *cases: str) -> None:
    """Play cases of the suite behind a proxy, whatever comes of them."""
    chosen = [word for case in cases for word in ("--case", case)]
    CliRunner().invoke(app, ["run", "--bootstrap", address, *chosen])


def test_a_correct_server_is_not_flagged() -> None:
    """By cases of the suite, which find each coordinator behind the proxy."""
    process = server(brokers=2)
    with proxied(process.bootstrap) as proxy:
        played(proxy.address, *CASES)
        code, flags, counts = proxy.ended()
    process.close()

    assert (code, flags) == (0, [])
    assert counts["exchanges"] >= 20


@pytest.mark.nightly
def test_a_correct_server_is_not_flagged_by_real_clients() -> None:
    """Members that come, go and come back, two brokers."""
    process = server(brokers=2)
    with proxied(process.bootstrap) as proxy:
        asyncio.run(with_aiokafka(proxy.address))
        code, flags, _ = proxy.ended()
    process.close()

    assert (code, flags) == (0, [])


@pytest.mark.parametrize(
    ("bug", "rule_id", "case"),
    [BROKEN[0], *(pytest.param(*each, marks=pytest.mark.nightly) for each in BROKEN[1:])],
)
def test_a_broken_server_is_flagged_by_the_rule(
    bug: str, rule_id: str, case: str, tmp_path: Path
) -> None:
    """Exit code 1, and the log has the frames of the reply."""
    log = tmp_path / "flags.jsonl"
    process = server(bug)
    with proxied(process.bootstrap, "--log", str(log)) as proxy:
        played(proxy.address, case)
        code, flags, counts = proxy.ended()
    process.close()

    assert code == 1
    assert {each["rule"] for each in flags} == {rule_id}
    assert counts["flags"] == len(flags)
    (first, *_) = logged(log)
    assert first["rule"] == rule_id
    assert all(each["request"] and each["reply"] for each in first["exchanges"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--listen", "here", "--upstream", "a:1"), "--listen 'here': wants HOST:PORT"),
        (("--listen", "a:1", "--upstream", "there"), "--upstream 'there': wants HOST:PORT"),
        (("--listen", "0.0.0.0:1", "--upstream", "a:1"), "say by --advertised HOST"),
        (
            ("--listen", "127.0.0.1:0", "--upstream", "a:1", "--log", "no/where"),
            "no/where: there is no folder no",
        ),
    ],
)
def test_misuse_is_one_clear_line(options: tuple[str, ...], problem: str) -> None:
    """Exit code 2."""
    done = run_here("proxy", *options, command=main)

    assert done.returncode == 2
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_guide_has_every_rule() -> None:
    """In the words of the flags."""
    guide = Path(__file__).resolve().parents[4] / "docs" / "guides" / "proxy.md"
    text = guide.read_text(encoding="utf-8")
    for rule in RULES:
        assert f"| `{rule.rule_id}` | {rule.says}" in text
