"""Large groups and many of them."""

from tests.abuse.many import groups, members_of_one_group

MOST_KB = 50
MOST_CPU_S = 20


def test_large_group_gets_its_assignment() -> None:
    """Every member is told, at a small cost in memory and time."""
    cost = members_of_one_group(1_000)

    assert cost.count == 1_000
    assert cost.kb_each < MOST_KB
    assert cost.cpu_s < MOST_CPU_S


def test_many_groups_are_all_listed() -> None:
    """Each is there, at a small cost in memory and time."""
    cost = groups(2_000)

    assert cost.count == 2_000
    assert cost.kb_each < MOST_KB
    assert cost.cpu_s < MOST_CPU_S
