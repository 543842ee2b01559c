"""The steps between a group's states."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "STATE",
    """
STATE-001 The steps between states that Kafka makes are possible
  @ LSJ model
  @ scala GroupMetadataTest.testStableToPreparingRebalanceTransition
  @ scala GroupMetadataTest.testPreparingRebalanceToEmptyTransition
  @ java ClassicGroupTest.testStableToPreparingRebalanceTransition
  commit - t-0=1
  transition Empty PreparingRebalance made
  transition Stable PreparingRebalance made
  transition AwaitingSync PreparingRebalance made
  transition PreparingRebalance Empty made
  transition PreparingRebalance AwaitingSync made
  transition AwaitingSync Stable made
  transition Empty Dead made
  transition PreparingRebalance Dead made
  transition AwaitingSync Dead made
  transition Stable Dead made
  transition Dead Dead made
STATE-002 The steps between states that Kafka never makes are refused
  @ LSJ model
  @ scala GroupMetadataTest.testEmptyToStableIllegalTransition
  @ scala GroupMetadataTest.testDeadToStableIllegalTransition
  commit - t-0=1
  transition Empty Empty refused
  transition Empty AwaitingSync refused
  transition Empty Stable refused
  transition PreparingRebalance PreparingRebalance refused
  transition PreparingRebalance Stable refused
  transition AwaitingSync Empty refused
  transition AwaitingSync AwaitingSync refused
  transition Stable Empty refused
  transition Stable AwaitingSync refused
  transition Stable Stable refused
  transition Dead Empty refused
  transition Dead PreparingRebalance refused
  transition Dead AwaitingSync refused
  transition Dead Stable refused
""",
)
