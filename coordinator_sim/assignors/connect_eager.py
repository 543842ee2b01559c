"""Connect's eager assignor: all work is assigned anew in each generation.

Source: kafka trunk, connect/runtime/.../distributed/EagerAssignor.java.
"""

from collections.abc import Mapping, Sequence

from coordinator_sim.assignors.connect_work import Work
from coordinator_sim.assignors.contract import ConnectAssignmentPlan, ConnectMember
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, java_string_key


class EagerConnectAssignor:
    """Round robin over the workers sorted by member id; connectors first, then tasks."""

    def assign(
        self,
        *,
        configured: Mapping[str, int],
        members: Sequence[ConnectMember],
        generation_id: int,  # noqa: ARG002  contract
        last_completed_generation_id: int,  # noqa: ARG002  contract
        now_ms: int,  # noqa: ARG002  contract
    ) -> ConnectAssignmentPlan:
        """Assign all work; earlier assignments do not matter, and nothing is revoked.

        Source: EagerAssignor.performTaskAssignment. The pointer continues from the connectors into
        the tasks.
        """
        ids = sorted({member.member_id for member in members}, key=java_string_key)
        work = {member_id: Work() for member_id in ids}
        everything = Work.configured(configured)
        for index, connector in enumerate(everything.connectors):
            work[ids[index % len(ids)]].connectors.append(connector)
        for index, task in enumerate(everything.tasks, start=len(everything.connectors)):
            work[ids[index % len(ids)]].tasks.append(task)
        order = java_hash_order(member.member_id for member in members)
        return ConnectAssignmentPlan(
            assigned={member_id: work[member_id].load() for member_id in order}, revoked={}
        )
