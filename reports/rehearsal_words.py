"""The results of a rehearsal as sentences and cells, for both the page and the terminal."""

from collections.abc import Mapping, Sequence
from typing import Final

from coordinator_sim.replay.upgrade_hurdles import Kind
from coordinator_sim.sim.scenario.upgrade import Deploy
from coordinator_sim_reports.formats import format_duration
from coordinator_sim_reports.rehearsal_figures import Balance, GroupRehearsal, Spread

NAMES: Final[Mapping[Deploy, str]] = {
    Deploy.TODAY: "a usual deploy today",
    Deploy.UPGRADE: "the deploy that upgrades",
    Deploy.AFTERWARDS: "a deploy afterwards",
    Deploy.BACK: "the deploy that goes back",
}
TITLES: Final[Mapping[str, str]] = {
    "unowned_s": "partition-seconds without an owner",
    "stopped_s": "seconds in which nobody worked",
    "longest_s": "longest gap of a partition, s",
    "moved": "partitions moved",
    "reprocessed": "records read again",
    "rebalances": "rebalances or epochs",
}
_COSTLIER: Final[Mapping[str, str]] = {
    "stopped_s": "seconds in which nobody works",
    "moved": "partitions moved",
    "reprocessed": "records read again",
}
_SMALL: Final = ("the", "its", "a", "in", "each")
_DAY_S: Final = 86_400
_WHOLE_FROM: Final = 10


def figure(value: float) -> str:
    """Format a figure: whole from ten on, else with up to two decimals."""
    if abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    return f"{value:,.2f}".rstrip("0").rstrip(".") if value else "0"


def signed(value: float) -> str:
    """Format a difference with its sign."""
    text = figure(abs(value))
    if text == "0":
        return "0"
    return f"+{text}" if value > 0 else f"\N{MINUS SIGN}{text}"


def spread_text(spread: Spread, *, is_signed: bool = False, is_stacked: bool = False) -> str:
    """Format a mean with the least and the most of the drawn worlds, if they differ."""
    form = signed if is_signed else figure
    mean, low, high = form(spread.mean), form(spread.low), form(spread.high)
    if low == high:
        return mean
    between = f"{low} to {high}"
    return f"{mean}\n{between}" if is_stacked else f"{mean} ({between})"


def pays_text(balance: Balance) -> str:
    """Say when the upgrade has paid for itself in one figure, as far as the worlds agree."""
    saving, extra = balance.saving, balance.extra
    if saving.low == saving.high == 0:
        return "nothing to pay or to save" if extra.mean <= 0 else "nothing is saved"
    if saving.low <= 0 <= saving.high:
        return "the worlds disagree"
    if balance.pays_after is None:
        return "never: each deploy afterwards costs more"
    if balance.pays_after == 0:
        if saving.mean < 0:
            return "costs no more, but each deploy afterwards does"
        return "with the upgrade itself"
    return "after 1 deploy" if balance.pays_after == 1 else f"after {balance.pays_after:,} deploys"


def verdict(each: GroupRehearsal) -> list[str]:
    """Say what to do, and what the upgrade of a group costs and saves, in a few sentences."""
    blocks = [
        f"Blocked, because {_within(hurdle.what)}"
        for hurdle in each.group.hurdles
        if hurdle.kind is Kind.BLOCKS
    ]
    if not each.deploys:
        return blocks or [f"Not rehearsed: {each.group.not_rehearsed}."]
    costs = {row.deploy: row.costs for row in each.deploys}
    unowned = each.balance[0]
    today, upgrade = (costs[deploy]["unowned_s"] for deploy in (Deploy.TODAY, Deploy.UPGRADE))
    return [
        *blocks,
        f"{'Upgrade' if unowned.saving.low > 0 else 'No gain'}: {_within(_saving(unowned))}",
        *_costlier(each.balance[1:]),
        _upgrade(upgrade, today),
        f"The way back leaves {figure(costs[Deploy.BACK]['unowned_s'].mean)}.",
        *_standstill(costs[Deploy.TODAY]["stopped_s"], costs[Deploy.AFTERWARDS]["stopped_s"]),
        *_history(each),
        *_pace(each, unowned),
    ]


def _within(sentence: str) -> str:
    """Return a sentence as the end of another; names at its beginning stay."""
    first = sentence.partition(" ")[0]
    return sentence if first.lower() not in _SMALL else f"{first.lower()}{sentence[len(first) :]}"


def _costlier(others: Sequence[Balance]) -> list[str]:
    """Name what each deploy afterwards costs more of, in every drawn world."""
    told = [
        f"{figure(-row.saving.mean)} {_COSTLIER[row.measure]}"
        for row in others
        if row.saving.high < 0
    ]
    return [f"Each deploy afterwards costs more elsewhere: {', '.join(told)}."] if told else []


def _upgrade(upgrade: Spread, today: Spread) -> str:
    return (
        f"The deploy that upgrades leaves {figure(upgrade.mean)} partition-seconds without an "
        f"owner; a usual deploy today leaves {figure(today.mean)}."
    )


def _saving(unowned: Balance) -> str:
    saving, worlds = unowned.saving, len(unowned.saving.values)
    if saving.low <= 0 <= saving.high and saving.low < saving.high:
        change = "less" if saving.mean > 0 else "more"
        return (
            "In time without an owner the drawn worlds disagree: a deploy afterwards leaves "
            f"{figure(abs(saving.mean))} {change} than one today on average, and less in "
            f"{unowned.worlds_saving} of {worlds}."
        )
    lone = " One world tells nothing of the spread: draw more (--seeds)." if worlds == 1 else ""
    if saving.mean <= 0:
        return (
            "In time without an owner no deploy gets cheaper: one afterwards leaves "
            f"{figure(-saving.mean)} more than one today.{lone}"
        )
    told = spread_text(saving)
    between = f" ({told.partition(' (')[2]}" if " (" in told else ""
    paid = {
        0: "and the upgrade costs no more than a usual deploy, so it has paid from the first on",
        1: "so the upgrade has paid for itself after 1 of them",
    }.get(
        unowned.pays_after or 0,
        f"so the upgrade has paid for itself after {unowned.pays_after} of them",
    )
    return (
        f"Each deploy afterwards saves {figure(saving.mean)}{between} partition-seconds without an "
        f"owner, {paid}.{lone}"
    )


def _standstill(today: Spread, later: Spread) -> list[str]:
    if figure(today.mean) == figure(later.mean):
        return []
    still = f"The whole group stands still for {figure(today.mean)} s in a deploy today"
    return [f"{still}, and for {figure(later.mean)} s in one afterwards."]


def _history(each: GroupRehearsal) -> list[str]:
    history = each.history
    if history.not_computed:
        return [f"The recorded history is not replayed: {history.not_computed}."]
    if not history.best:
        return [
            "What the recorded history left without an owner is not told: it names no assignor."
        ]
    before = history.rows[0].figures.sharing
    was = 0.0 if before is None else before.unowned_ms / 1000
    told = [
        f"{_fewer(row.saves_s)} with {row.name.replace(', ', ' and ')}"
        for row in history.best
        if row.saves_s is not None
    ]
    left = f"The recorded {recorded(each)} left up to {figure(was)} partition-seconds unowned"
    if history.coverage.missed:
        left += f" {history.coverage.words}"
    missing = ""
    if history.left_out:
        missing = f"; the time given (--within) was over before {', '.join(history.left_out)}"
    return [f"{left}; replayed under the consumer protocol they are {', '.join(told)}{missing}."]


def _fewer(saves_s: float) -> str:
    return f"{figure(abs(saves_s))} {'fewer' if saves_s >= 0 else 'more'}"


def _pace(each: GroupRehearsal, unowned: Balance) -> list[str]:
    count, recorded_s = each.group.deploys.count, each.group.recorded_s
    if not count:
        return ["The trace has no deploy of the whole group, so how often you deploy is not told."]
    if recorded_s < _DAY_S:
        return []
    days = recorded_s / _DAY_S
    each_day = unowned.saving.mean * count / days
    told = f"{count} deploy{'' if count == 1 else 's'} in {days:,.1f} days"
    paid = ""
    if unowned.pays_after and unowned.saving.mean > 0:
        paid = f", so that it has paid after {unowned.pays_after * days / count:,.1f} days"
    return [f"{told}: {signed(each_day)} partition-seconds saved a day{paid}."]


def recorded(each: GroupRehearsal) -> str:
    """Return how long the recording of a group is."""
    seconds = each.group.recorded_s
    if seconds >= _DAY_S:
        return f"{seconds / _DAY_S:,.1f} days"
    return format_duration(seconds * 1000)
