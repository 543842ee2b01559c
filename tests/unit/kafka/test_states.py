"""What is told of a group's states agrees with the table that the core obeys."""

import pytest

from coordinator_sim.kafka.states import PREDECESSORS, STATE_RULES, GroupState


@pytest.mark.parametrize("state", GroupState)
def test_every_transition_has_its_trigger(state: GroupState) -> None:
    """Each way out of a state that the table allows is explained, and no other."""
    allowed = {after for after in GroupState if state in PREDECESSORS[after]} - {GroupState.DEAD}
    told = {after for after, _ in STATE_RULES[state].exits} - {GroupState.DEAD}

    assert told == allowed
    assert state is GroupState.DEAD or GroupState.DEAD in dict(STATE_RULES[state].exits)
