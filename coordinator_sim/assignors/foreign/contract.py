"""What an assignor from outside is asked, and what it answers.

`docs/guides/check-an-assignor.md` describes the same in JSON.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.resources import TopicPartition

TIME_BOUND_S: Final = 10.0
"""Longest time for one assignment: of the CPU for a callable, by the clock for a process."""


class AssignorFault(DataError):
    """An assignor from outside failed; the message names it, and the member and the partition."""


class Member(Struct, frozen=True):
    """A member of the group as its leader sees it.

    Args:
        id: Member id; the answer is keyed by it.
        topics: What it subscribes to.
        owned: What it says it owns.
        generation: The generation in which it got that; -1 for none.
        instance: `group.instance.id`; None for a dynamic member.
        rack: `client.rack`.
    """

    id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance: str | None = None
    rack: str | None = None


Topics = Mapping[str, tuple[tuple[str, ...], ...]]
"""Topic -> for each partition the racks of its replicas; empty where they are unknown."""
Answer = Mapping[str, Iterable[tuple[str, int]]]
"""Member id -> its partitions. A member that is left out gets nothing."""
AssignFunction = Callable[[Topics, tuple[Member, ...]], Answer]


CLASS_EXAMPLE: Final = f"com.example.Mine@mine.jar{os.pathsep}kafka-clients-4.3.1.jar"
"""A Java class with its class path."""

AssignorKind = Literal["python", "process", "java"]


class OwnAssignor(Struct, frozen=True, kw_only=True):
    """Location of a user's assignor, from which another process can load it again.

    Args:
        name: Its name in JoinGroup. Beginning with `cooperative-`, it is a cooperative one.
        kind: `python`: `module:function` or `file.py:function`. `process`: a command line. `java`:
            `class@class-path`.
        target: The function, the command or the class.
        folder: Working directory, from which files and modules are found too.
    """

    name: str
    kind: AssignorKind
    target: str
    folder: str
