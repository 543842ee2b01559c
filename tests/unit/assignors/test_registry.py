"""An assignor is known by its module alone."""

from pathlib import Path

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS, KAFKA_ASSIGNORS
from tests.library_copy import library_copy, printed_by

_ADDED = '''
"""Range by another name."""

from typing import Final

from coordinator_sim.assignors.range import RangeAssignor


class NarrowAssignor(RangeAssignor):
    """Does as range does."""

    @property
    def name(self) -> str:
        """Protocol name in JoinGroup."""
        return "narrow"


OFFERED: Final = (NarrowAssignor,)
'''
_ASKED = """
from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim_reports.trials import compared_assignors
from coordinator_sim_scenarios.strategies import assignor_lists

print(list(CONSUMER_ASSIGNORS)[-1], compared_assignors()[-1], assignor_lists()[-1][0])
"""


def test_kafkas_assignors_come_first() -> None:
    """Each says the name that it is registered by."""
    assert tuple(CONSUMER_ASSIGNORS)[: len(KAFKA_ASSIGNORS)] == KAFKA_ASSIGNORS
    assert all(make().name == name for name, make in CONSUMER_ASSIGNORS.items())


def test_a_module_makes_an_assignor(tmp_path: Path) -> None:
    """Scenarios, the trials of the reports and the strategies of the property tests know it."""
    package = library_copy(tmp_path)
    (package / "assignors" / "narrow.py").write_text(_ADDED.lstrip())

    assert printed_by(package, _ASKED) == ["narrow", "narrow", "narrow"]
