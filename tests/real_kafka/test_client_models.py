"""Recordings made now, of the clients that are installed, against their models."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from coordinator_sim.clients.client_traits import FRANZ_GO, LIBRDKAFKA, ClientTraits
from tests.unit.clients.rehearsals import rehearse
from tools.record_clients import record

pytestmark = pytest.mark.real_kafka

SLACK_MS = 250
"""A machine that also runs the broker is late at times."""
FRESH = ("rejoin", "close", "slow-poll", "refused")


def has_go() -> bool:
    """Whether a Go is installed that can build, if need be with a newer one that it fetches."""
    go = shutil.which("go")
    if go is None:
        return False
    told = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"go(\d+)\.(\d+)", told)
    return version is not None and (int(version[1]), int(version[2])) >= (1, 21)


@pytest.mark.parametrize("traits", [LIBRDKAFKA, FRANZ_GO], ids=lambda traits: traits.name)
def test_a_model_still_sends_what_the_client_sends(tmp_path: Path, traits: ClientTraits) -> None:
    """Not only what it sent when the recordings were made."""
    pytest.importorskip("confluent_kafka")
    if traits is FRANZ_GO and not has_go():
        pytest.skip("needs Go 1.21 or newer, which fetches the release that go.mod names")
    record(traits.name, list(FRESH), tmp_path)

    for situation in FRESH:
        rehearse(tmp_path, traits, situation, "a", 0, slack_ms=SLACK_MS)
