"""What holds of a share partition whatever its members, writes and clock do."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.broker.shares.in_flight_state import RecordState
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from tests.unit.broker.shares.share_stage import LOCK_MS, Stage, active

pytestmark = pytest.mark.property
LIMIT = 2
MEMBERS = ["a", "b"]

steps = st.one_of(
    st.tuples(
        st.just("acquire"),
        st.sampled_from(MEMBERS),
        st.integers(1, 6),
        st.integers(1, 12),
        st.booleans(),
    ),
    st.tuples(
        st.just("acknowledge"),
        st.sampled_from(MEMBERS),
        st.integers(0, 12),
        st.integers(0, 4),
        st.integers(0, 4),
    ),
    st.tuples(st.just("release"), st.sampled_from(MEMBERS)),
    st.tuples(st.just("advance"), st.sampled_from([LOCK_MS // 2, LOCK_MS])),
    st.tuples(st.just("persister"), st.sampled_from([None, ErrorCode.NONE, ErrorCode.NONE])),
    st.tuples(st.just("answer"), st.integers(0, 5), st.booleans()),
)


class Watched:
    """A partition whose deliveries are watched."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.deliveries: dict[int, int] = {}

    def run(self, step: tuple[object, ...]) -> None:
        """Take one step of a program."""
        stage = self.stage
        match step:
            case ("acquire", str(member), int(size), int(wanted), bool(exactly)):
                held = self.holders()
                offset = stage.partition.next_fetch_offset()
                batches = [(at, at + size - 1) for at in (offset, offset + size)]
                acquired = stage.acquire(member, *batches, max_records=wanted, exactly=exactly)
                for first, last, count in acquired:
                    for at in range(first, last + 1):
                        assert at not in held, f"{member} got {at}, which {held[at]} has"
                        self.deliveries[at] = self.deliveries.get(at, 0) + 1
                        assert self.deliveries[at] == count <= LIMIT
                        assert self.holders()[at] == member
            case ("acknowledge", str(member), int(first), int(span), int(kind)):
                # Kafka throws where the cache is empty and the start offset within the range.
                with suppress(OperationAborted):
                    stage.acknowledge(member, (first, first + span, kind))
            case ("release", str(member)):
                stage.release(member)
            case ("advance", int(ms)):
                stage.advance(ms)
            case ("persister", error):
                stage.persister.error = error  # type: ignore[assignment]
            case ("answer", int(index), bool(fails)) if index < stage.persister.waiting:
                error = ErrorCode.NOT_COORDINATOR if fails else ErrorCode.NONE
                stage.persister.answer(index, error)

    def holders(self) -> dict[int, str]:
        """The members that work on records."""
        return {
            at: state.member_id
            for batch in self.stage.partition.records.batches
            for first, last, state in batch.parts()
            if state.is_acquired
            for at in range(first, last + 1)
        }


@given(st.lists(steps, min_size=10, max_size=50))
def test_records_have_one_member_at_a_time_and_few_deliveries(
    program: list[tuple[object, ...]],
) -> None:
    """The start offset never goes back, and the records done with behind it are counted."""
    watched = Watched(active(delivery_count_limit=LIMIT))
    partition = watched.stage.partition
    start_offset = 0
    for step in program:
        watched.run(step)
        assert partition.start_offset >= start_offset
        start_offset = partition.start_offset
        terminal = sum(
            max(0, last - max(first, start_offset) + 1)
            for batch in partition.records.batches
            for first, last, state in batch.parts()
            if state.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
        )
        assert partition.delivery_complete_count == terminal
