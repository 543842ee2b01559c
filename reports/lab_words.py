"""Which assignor wins in the lab: a sentence for each size, for both its page and the terminal."""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.harness.assignor_lab import LabResult
from coordinator_sim_reports.winners import Choice, Figure, verdict

MUST: Final = frozenset({"owned once", "repeatable", "mixed"})
"""Properties without which an assignor is of no use."""
_FIGURES: Final = (
    Figure(
        column="moved",
        did="moved {} partitions in the deploy",
        at_none="moved nothing in the deploy",
    ),
    Figure(
        column="stopped",
        did="took {} partitions from members that stayed",
        at_none="took nothing from members that stayed",
    ),
    Figure(
        column="spread",
        did="gave the fullest member {} partitions more than the emptiest",
        at_none="gave all members equally much",
    ),
)
_PROOF: Final = "No chance is in it: the figures are the same in every run."


def answers_of(results: Sequence[LabResult]) -> list[str]:
    """Return a sentence for each size: which assignor wins, of those that keep what all must keep.

    Args:
        results: Each assignor at each size, in reading order.
    """
    told = []
    for members in dict.fromkeys(each.size.members for each in results):
        choices = [
            Choice(
                name=each.assignor,
                values={
                    "moved": (each.stories[2].moved,),
                    "stopped": (each.stories[2].stopped,),
                    "spread": (each.spread,),
                },
            )
            for each in results
            if each.size.members == members and not MUST & each.failed.keys()
        ]
        sentence = verdict(choices, _FIGURES, where=f"a group of {members:,}", proof=_PROOF)
        if len(choices) > 1:
            told.append(f"{members:,} members: {sentence}")
    return told
