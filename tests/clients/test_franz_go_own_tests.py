"""franz-go's own integration tests of its groups, from the Go module cache, at `serve`.

They are not ours and no line of them is here: `go test` builds them from the version of franz-go in
`franz_go/go.mod`. What they need is told by environment variables, of which `KGO_SEEDS` is the
broker's address; a broker of Apache Kafka 4.4.0 passes the same tests.
"""

import json
import os
import subprocess
from typing import Final

import pytest

from coordinator_sim_pytest.server import ServedKafka
from tests.clients.franz import HERE, find_go

pytestmark = [pytest.mark.real_kafka, pytest.mark.kafka_profile("4.4")]

_PACKAGE: Final = "github.com/twmb/franz-go/pkg/kgo"
_PATIENCE_S: Final = 540
_SHORT: Final = ("TestGroupSimple", "Test848RegexBrokerResolves", "TestShouldNotify848Restart")
_LONG: Final = ("TestGroupETL", "TestTxnEtl")
_SHARES: Final = (
    "TestShareGroup",
    "TestShareGroupETL",
    "TestShareGroupAckOnClose",
    "TestShareGroupOffsetsAdmin",
    "TestConsumeRegexShareSkipsInternal",
)
_CHAINS: Final = (
    "range",
    "cooperative-sticky",
    "range/848",
    "sticky/848",
    "cooperative-sticky/static",
    "sticky/848/static",
)


def passed(bootstrap: str, names: tuple[str, ...], **variables: str) -> set[str]:
    """The tests that passed, with their parts; the test fails when one of them failed."""
    go = find_go()
    if go is None:
        pytest.skip("franz-go needs Go 1.26 or later")
    told = {"KGO_SEEDS": bootstrap, "KGO_TEST_RF": "1", "KGO_LOG_LEVEL": "none", **variables}
    options = ("-count=1", "-json", "-run", f"^({'|'.join(names)})$", "-timeout", f"{_PATIENCE_S}s")
    done = subprocess.run(
        [go, "test", *options, _PACKAGE],
        cwd=HERE / "franz_go",
        env={**os.environ, "GOTOOLCHAIN": "local", **told},
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S + 60,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["Test"] for each in ended if each["Action"] == "pass" and "Test" in each}


def test_groups_and_expressions_of_the_new_protocol(kafka_server: ServedKafka) -> None:
    """None of them is skipped, as they are at a broker without the new protocol."""
    found = passed(kafka_server.bootstrap, _SHORT)
    assert found >= {*_SHORT, "TestGroupSimple/848", "TestGroupSimple/classic"}


@pytest.mark.kafka_settings({"group.share.delivery.count.limit": 10})
def test_share_groups(kafka_server: ServedKafka) -> None:
    """Members that come, go and lose locks; what is acknowledged on close; offsets by kadm."""
    assert passed(kafka_server.bootstrap, _SHARES, KGO_TEST_RECORDS="20000") >= set(_SHARES)


@pytest.mark.nightly
@pytest.mark.parametrize("chaos", ["0", "1"], ids=["calm", "chaos"])
def test_chains_of_groups_read_each_record_once(kafka_server: ServedKafka, chaos: str) -> None:
    """Three groups in a row, with and without transactions, whose members come and go.

    `KGO_TEST_CHAOS` breaks connections meanwhile.
    """
    found = passed(kafka_server.bootstrap, _LONG, KGO_TEST_RECORDS="50000", KGO_TEST_CHAOS=chaos)
    assert found >= {*_LONG, *(f"{name}/{chain}" for name in _LONG for chain in _CHAINS)}
