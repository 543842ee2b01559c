"""Patterns that `re` cannot compile are refused as any other fault, whoever brings them."""

import pytest

from coordinator_sim.broker.apis.client_metrics_configs import _is_pattern
from coordinator_sim.broker.security.certificate_names import PrincipalRules
from coordinator_sim.connect.settings.config_def import regex
from coordinator_sim.errors import ConfigError

BAD = pytest.mark.parametrize("pattern", ["(", "(" * 9_000, "a{99999999999}"])


@BAD
def test_a_client_metrics_pattern_is_refused(pattern: str) -> None:
    """A connection ended with a bug of the server."""
    assert not _is_pattern(f"client_id={pattern}")


@BAD
def test_a_connectors_pattern_is_invalid(pattern: str) -> None:
    """A worker's REST server answered with status 500."""
    assert "Invalid regex" in str(regex("topics.regex", pattern))


@BAD
def test_a_rule_for_certificates_is_refused(pattern: str) -> None:
    """The command ended with a traceback."""
    with pytest.raises(ConfigError, match="is no pattern"):
        PrincipalRules(f"RULE:{pattern}/x/")
