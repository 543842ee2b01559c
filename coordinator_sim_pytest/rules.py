"""Fault rules in the form of a marker: the library's own, or plain data."""

from collections.abc import Mapping
from typing import Any

import msgspec

from coordinator_sim.broker.faults.faults import Fault, check_fault
from coordinator_sim.errors import ConfigError


def rule_of(given: Fault | Mapping[str, Any]) -> Fault:
    """Return a rule, from itself or from data in the form of the control surface.

    Raises:
        ConfigError: the rule could never take effect; the message names the field.
    """
    try:
        fault = given if isinstance(given, Fault) else msgspec.convert(given, Fault)
    except msgspec.ValidationError as error:
        raise ConfigError(f"fault rule {given!r}: {error}") from error
    check_fault(fault)
    return fault
