"""The judge flags replies which no correct coordinator could give, each by its rule."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from coordinator_sim_conformance.proxy.exchanges import Exchange, Flag
from coordinator_sim_conformance.proxy.judging import WATCHED, Judge
from coordinator_sim_conformance.proxy.rules import RULES
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.running import cases_for, play_case
from coordinator_sim_conformance.script.play import read_cases
from coordinator_sim_conformance.targets.simulator import SimulatorTarget
from coordinator_sim_conformance.targets.target import Call, Outcome, World

Tamper = Callable[[Exchange], None]


def untouched(_: Exchange) -> None:
    """Leave a reply as it is."""


class Passing(SimulatorTarget):
    """The simulator with a judge before it; every client passes.

    Version 0 of offsets is not judged, as the proxy reads none.
    """

    def __init__(self, tamper: Tamper = untouched) -> None:
        super().__init__()
        self.flags: list[Flag] = []
        self.judge = Judge(all_pass=True)
        self._tamper = tamper
        self._open: dict[int, Exchange] = {}

    def start(self, world: World) -> None:
        """Begin anew, also in the judge's memory."""
        self.judge = Judge(all_pass=True)
        self._open = {}
        super().start(world)

    def call(self, call: Call) -> Outcome:
        """Send a request, past the judge."""
        if call.api in WATCHED and (call.version or "Offset" not in call.api):
            exchange = Exchange(
                connection=0,
                api=call.api,
                version=call.version,
                request=call.data,
                sent=self.judge.place(),
            )
            self._open[call.call_id] = exchange
            self.judge.sent(exchange)
        return self._judged(super().call(call))

    def advance(self, ms: int, *, early: bool = False) -> Outcome:
        """Let time pass."""
        return self._judged(super().advance(ms, early=early))

    def operate(self, operation: dict[str, Any]) -> Outcome:
        """Run an operation."""
        return self._judged(super().operate(operation))

    def _judged(self, outcome: Outcome) -> Outcome:
        for answer in outcome.answers:
            exchange = self._open.pop(answer.call_id, None)
            if exchange is not None:
                exchange.reply = answer.data
                exchange.replied = self.judge.place()
                self._tamper(exchange)
                self.flags += self.judge.replied(exchange)
        return outcome


@pytest.mark.parametrize("profile", ["4.4", "3.9", "2.8", "0.10.2"])
def test_no_case_of_the_suite_is_flagged(profile: str) -> None:
    """Failovers, lost writes, expiry, static members and old clients among them."""
    judged = 0
    for case in cases_for(all_cases(), profile):
        target = Passing()
        play_case(case, target, profile)
        judged += target.judge.counts.exchanges
        told = [f"{case.case_id}: {each.rule.rule_id} {each.said}" for each in target.flags]
        assert not told
    assert judged > 300


def flagged(script: str, tamper: Tamper) -> list[str]:
    """Rules that are flagged when a script is played with these replies."""
    target = Passing(tamper)
    lines = "".join(f"  {line.strip()}\n" for line in script.split(";"))
    (case,) = read_cases("JOIN", f"X-001 a title\n  @ LSJ must\n{lines}")
    play_case(case, target, "4.4")
    return [each.rule.rule_id for each in target.flags]


def on(api: str, change: Callable[[Exchange], dict[str, Any] | None]) -> Tamper:
    """Change the replies to one API; None leaves one as it is."""

    def tamper(exchange: Exchange) -> None:
        changed = change(exchange) if exchange.api == api else None
        if changed is not None:
            exchange.reply = exchange.reply | changed

    return tamper


def to_followers(change: Callable[[Exchange], dict[str, Any]]) -> Tamper:
    """Change what followers are told by JoinGroup."""

    def changed(exchange: Exchange) -> dict[str, Any] | None:
        reply = exchange.reply
        is_follower = not reply["errorCode"] and reply["leader"] != reply["memberId"]
        return change(exchange) if is_follower else None

    return on("JoinGroup", changed)


def without_error(exchange: Exchange) -> dict[str, Any] | None:
    """No error."""
    return {"errorCode": 0} if exchange.error else None


def stale(exchange: Exchange) -> dict[str, Any] | None:
    """The offset 5, whatever was committed since."""
    text = json.dumps(exchange.reply).replace('"committedOffset": 7', '"committedOffset": 5')
    found: dict[str, Any] = json.loads(text)
    return found


def committed(exchange: Exchange) -> dict[str, Any]:
    """No error for any partition."""
    found: dict[str, Any] = json.loads(
        json.dumps(exchange.reply).replace('"errorCode": 22', '"errorCode": 0')
    )
    return found


def served_again() -> Tamper:
    """No error any more, from the second heartbeat on that has one."""
    refused: list[Exchange] = []

    def changed(exchange: Exchange) -> dict[str, Any] | None:
        refused.append(exchange)
        return without_error(exchange) if len(refused) > 1 else None

    return on("Heartbeat", changed)


def of_another(exchange: Exchange) -> dict[str, Any] | None:
    """An assignment that nobody handed in."""
    return None if exchange.error else {"assignment": "AAAA"}


TAMPERED = [
    (
        "PX-JOIN-08",
        "stable A; join A",
        on("JoinGroup", lambda one: {"memberId": "A2", "members": []} if one.member_id else None),
    ),
    (
        "PX-JOIN-02",
        "stable A B; join B",
        to_followers(lambda one: {"generationId": 1} if one.member_id else {}),
    ),
    ("PX-WIRE-03", "stable A", on("SyncGroup", lambda _: {"throttleTimeMs": -1})),
    ("PX-ERR-01", "stable A; heartbeat A", on("Heartbeat", lambda _: {"errorCode": 79})),
    ("PX-JOIN-01", "stable A", on("JoinGroup", lambda _: {"generationId": 0})),
    (
        "PX-JOIN-03",
        "stable A B",
        to_followers(lambda one: {"members": [{"memberId": one.reply["memberId"]}]}),
    ),
    ("PX-JOIN-04", "stable A B", to_followers(lambda _: {"leader": "somebody"})),
    ("PX-JOIN-05", "stable A B", to_followers(lambda _: {"memberId": "unlisted"})),
    ("PX-JOIN-06", "join A v=9", on("JoinGroup", lambda _: {"errorCode": 79, "memberId": ""})),
    ("PX-JOIN-07", "stable A", on("JoinGroup", lambda _: {"protocolName": "sticky"})),
    ("PX-SYNC-01", "stable A B", on("SyncGroup", of_another)),
    ("PX-FENCE-01", "stable A B; sync B gen=1", on("SyncGroup", without_error)),
    ("PX-FENCE-01", "stable A B; heartbeat B gen=1", on("Heartbeat", without_error)),
    ("PX-FENCE-01", "stable A B; commit B t-0=5 gen=1", on("OffsetCommit", committed)),
    ("PX-FENCE-02", "stable A:i1 B; join C:i1; heartbeat A v=4; heartbeat A v=4", served_again()),
    ("PX-COMMIT-01", "stable A; commit A t-0=5", on("OffsetCommit", lambda _: {"topics": []})),
    (
        "PX-FETCH-01",
        "stable A; commit A t-0=5; commit A t-0=7; fetch t-0",
        on("OffsetFetch", stale),
    ),
]


@pytest.mark.parametrize(("rule_id", "script", "tamper"), TAMPERED)
def test_a_reply_that_cannot_be_is_flagged_by_its_rule(
    rule_id: str, script: str, tamper: Tamper
) -> None:
    """Once; the same replies without the change are not."""
    assert flagged(script, untouched) == []
    assert flagged(script, tamper)[:1] == [rule_id]


def test_every_rule_about_groups_is_tried() -> None:
    """The two about frames are tried with frames."""
    tried = {rule_id for rule_id, _, _ in TAMPERED}
    assert tried == {each.rule_id for each in RULES} - {"PX-WIRE-01", "PX-WIRE-02"}


def test_a_group_is_told_once_of_a_rule_and_memory_is_bounded() -> None:
    """The same again is counted; of two groups that fit, the first is forgotten by the third."""
    judge = Judge(most_groups=2)

    def beat(group: str) -> int:
        exchange = Exchange(
            connection=1,
            api="Heartbeat",
            version=4,
            request={"groupId": group, "generationId": 1, "memberId": "m"},
            sent=judge.place(),
        )
        judge.sent(exchange)
        exchange.reply, exchange.replied = {"errorCode": 79, "throttleTimeMs": 0}, judge.place()
        return len(judge.replied(exchange))

    assert [beat("a"), beat("a"), beat("b"), beat("c"), beat("b"), beat("a")] == [1, 0, 1, 1, 0, 1]
    assert (judge.counts.flags, judge.counts.repeated, judge.counts.groups) == (4, 2, 4)
