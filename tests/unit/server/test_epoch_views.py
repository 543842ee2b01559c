"""Share groups as the control surface shows them."""

from coordinator_sim.server.control.views import group_count, group_summaries, group_view
from tests.unit.broker.shares.share_world import GROUP, MEMBER, share_world


def test_a_share_group_is_shown_with_its_members() -> None:
    """Its epoch stands for a generation, and several members have a partition."""
    world = share_world(partitions=2)
    for member in (MEMBER, "other"):
        world.settle(member)
        world.settle(MEMBER)

    (summary,) = group_summaries(world.cluster)
    view = group_view(world.cluster, GROUP)

    assert (summary.group_id, summary.protocol_type, summary.state) == (GROUP, "share", "Stable")
    assert group_count(world.cluster) == 1
    by_broker = [group_count(world.cluster, each) for each in world.cluster.settings.broker_ids]
    assert sum(by_broker) == 1
    assert view is not None
    assert {each.member_id for each in view.members} == {MEMBER, "other"}
    assert {each for member in view.members for each in member.assignment} == {"lines-0", "lines-1"}
    assert all(each.session_timeout_ms == 45_000 for each in view.members)
    assert all(each.session_ends_ms for each in view.members)
