"""What a sticky assignor must make of contradictory claims, as small questions with one answer.

The golden vectors of the tests compare whole assignments with Java's; these say which rule it is.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

from coordinator_sim.assignors.contract import AssignorMember
from coordinator_sim.assignors.registry import make_consumer_assignor
from coordinator_sim.assignors.user_data import encode_sticky_user_data
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import Subscription
from coordinator_sim_conformance.script.stage import CaseFailed

_TOPIC: Final = "t"
_CALLS_A_PARTITION: Final = 12
"""Calls of functions that an assignor may make for each partition: half again as many as it does
where all is as even as can be after the first look."""


def _member(
    name: str, owned: Sequence[int], generation_id: int, *, rack: str | None = None
) -> AssignorMember:
    partitions = tuple(TopicPartition(_TOPIC, number) for number in owned)
    return AssignorMember(
        member_id=name,
        subscription=Subscription(
            topics=(_TOPIC,),
            user_data=encode_sticky_user_data(partitions, generation_id),
            owned_partitions=partitions,
            generation_id=generation_id,
            rack_id=rack,
        ),
    )


def _assigned(
    assignor: str, members: Sequence[AssignorMember], racks: Sequence[tuple[str, ...]]
) -> dict[str, list[int]]:
    plan = make_consumer_assignor(assignor).assign({_TOPIC: tuple(racks)}, members)
    return {name: sorted(tp.partition for tp in given) for name, given in plan.items()}


def _expect(saw: object, wanted: object) -> None:
    if saw != wanted:
        raise CaseFailed(f"wanted {wanted}, saw {saw}", ())


def _newest_claim_wins() -> None:
    """The claim of the higher generation holds where two claim a partition."""
    for order in (1, -1):
        members = [_member("a", (0, 1), 5), _member("b", (0, 1), 3)][::order]
        _expect(_assigned("cooperative-sticky", members, ((), ()))["a"][:1], [0])


def _newest_user_data_wins() -> None:
    """The same where the assignor is told in its own data, as `sticky` is."""
    for order in (1, -1):
        members = [_member("a", (0, 1), 3), _member("z", (0, 1), 5)][::order]
        _expect(_assigned("sticky", members, ((), ())), {"a": [1], "z": [0]})


def _doubtful_claims_are_nobodys() -> None:
    """No claim counts where two of one generation meet: the partition waits for a round."""
    members = [_member("a", (0, 1), 4), _member("b", (0, 1), 4)]
    _expect(_assigned("cooperative-sticky", members, ((), ())), {"a": [], "b": []})


def _moving_partition_is_withheld() -> None:
    """What one member must give up is given to another in the round after."""
    members = [_member("a", (0, 1, 2, 3), 4), _member("b", (), 4)]
    given = _assigned("cooperative-sticky", members, ((),) * 4)
    _expect((len(given["a"]), given["b"]), (2, []))


def _rack_aware_move_is_withheld() -> None:
    """Also where racks decide what moves."""
    members = [_member("a", (0, 1), 4, rack="x"), _member("b", (), 4, rack="y")]
    given = _assigned("cooperative-sticky", members, (("y",), ("x",)))
    _expect(given, {"a": [1], "b": []})


def _looks_on_only_while_it_helps() -> None:
    """Members of two topics share them evenly; that nobody can have less or more is seen at once.

    The two of the smaller topic hold few partitions each, the two of the larger one many.
    """
    topics = {"few": 3, "many": 41}
    members = [
        AssignorMember(member_id=name, subscription=Subscription(topics=(topic,)))
        for name, topic in (("a", "many"), ("b", "many"), ("c", "few"), ("d", "few"))
    ]
    racks = {topic: ((),) * count for topic, count in topics.items()}
    # The first assignment of a process also fills caches, which are no calls for a partition.
    make_consumer_assignor("cooperative-sticky").assign(dict.fromkeys(topics, ((),)), members)
    with _few_calls(_CALLS_A_PARTITION * sum(topics.values())):
        plan = make_consumer_assignor("cooperative-sticky").assign(racks, members)
    _expect([len(plan[name]) for name in "abcd"], [21, 20, 2, 1])


@contextmanager
def _few_calls(most: int) -> Iterator[None]:
    """Break off what calls more functions than that.

    Garbage is not collected meanwhile: finalizers of other objects would count.

    Raises:
        CaseFailed: it does.
    """
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"
        if count > most:
            raise CaseFailed(f"wanted at most {most} calls, saw more", ())

    before = sys.getprofile()
    gc.disable()
    sys.setprofile(counted)
    try:
        yield
    finally:
        sys.setprofile(before)
        gc.enable()


QUESTIONS: Final[dict[str, Callable[[], None]]] = {
    "newest-claim-wins": _newest_claim_wins,
    "newest-user-data-wins": _newest_user_data_wins,
    "doubtful-claims-are-nobodys": _doubtful_claims_are_nobodys,
    "moving-partition-is-withheld": _moving_partition_is_withheld,
    "rack-aware-move-is-withheld": _rack_aware_move_is_withheld,
    "looks-on-only-while-it-helps": _looks_on_only_while_it_helps,
}
"""Each question by its id."""
