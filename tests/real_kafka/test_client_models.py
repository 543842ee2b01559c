"""Recordings made now, of the clients that are installed, against their models."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from coordinator_sim.clients.client_traits import FRANZ_GO, LIBRDKAFKA
from tests.unit.clients.rehearsals import rehearse, rehearse_new
from tools.record_clients import NEW_CONSUMER, record

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]

SLACK_MS = 250
"""A machine that also runs the broker is late at times."""
FRESH = ("rejoin", "close", "slow-poll", "refused")
TAKES = 3
"""A recording that something else on the machine held up is made again; a model that is wrong fails
at each."""


def has_go() -> bool:
    """Whether a Go is installed that can build, if need be with a newer one that it fetches."""
    go = shutil.which("go")
    if go is None:
        return False
    told = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"go(\d+)\.(\d+)", told)
    return version is not None and (int(version[1]), int(version[2])) >= (1, 21)


@pytest.mark.parametrize("client", [LIBRDKAFKA.name, FRANZ_GO.name, NEW_CONSUMER])
def test_a_model_still_sends_what_the_client_sends(tmp_path: Path, client: str) -> None:
    """Not only what it sent when the recordings were made."""
    pytest.importorskip("confluent_kafka")
    if client == FRANZ_GO.name and not has_go():
        pytest.skip("needs Go 1.21 or newer, which fetches the release that go.mod names")
    left = list(FRESH)
    for take in range(TAKES):
        folder = tmp_path / str(take)
        folder.mkdir()
        record(client, left, folder)
        differing = {each: difference(folder, client, each) for each in left}
        left = [each for each in left if differing[each] is not None]
        if not left:
            return
    pytest.fail("\n".join(f"{each}: {differing[each]}" for each in left))


def difference(folder: Path, client: str, situation: str) -> AssertionError | None:
    """What the model does otherwise than the client in a recording; None for nothing."""
    try:
        if client == NEW_CONSUMER:
            rehearse_new(folder, situation, "a", 0, slack_ms=SLACK_MS)
        else:
            traits = LIBRDKAFKA if client == LIBRDKAFKA.name else FRANZ_GO
            rehearse(folder, traits, situation, "a", 0, slack_ms=SLACK_MS)
    except AssertionError as error:
        return error
    return None
