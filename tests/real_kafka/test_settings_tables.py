"""The recorded settings are still those of each release's own classes."""

import pytest

from conformance.real_kafka.settings_table import TABLES, settings_of
from conformance.requirements import RELEASES

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize("profile", RELEASES)
def test_release_has_the_settings_of_its_table(profile: str) -> None:
    """Names, types, defaults and bounds, in the order in which Kafka checks them."""
    table = TABLES / f"{profile}.jsonl"

    assert settings_of(RELEASES[profile]) == table.read_text(encoding="utf-8").splitlines()
