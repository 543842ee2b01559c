"""Compares a line of a script with what was observed."""

from collections.abc import Sequence

from coordinator_sim_conformance.script.answers import Words

Observed = tuple[str, Words]


def options_of(words: Sequence[str]) -> Words:
    """Return the `name=value` words of a command."""
    return {
        name: value for name, equals, value in (word.partition("=") for word in words) if equals
    }


def names_of(words: Sequence[str]) -> list[str]:
    """Return the words of a command that name something."""
    return [word for word in words if "=" not in word]


def _fits(wanted: Sequence[str], observed: Observed) -> bool:
    who, *words = wanted
    fields = options_of(words)
    if words and "=" not in words[0]:
        fields["error"] = words[0]
    return who == observed[0] and all(
        observed[1].get(name) in (value, *value.split("/")) for name, value in fields.items()
    )


def mismatch(
    wanted: Sequence[Sequence[str]], observed: Sequence[Observed], *, ordered: bool = False
) -> str | None:
    """Return the difference, or None.

    Args:
        wanted: Expected answers, each `who [error] [field=value ...]`; `a/b` allows either.
        observed: Observed answers.
        ordered: Whether the order counts.
    """
    if ordered:
        left = list(observed)
        for want in wanted:
            if not left or not _fits(want, left.pop(0)):
                return f"wanted in this order: {' '.join(want)}"
        return None if not left else f"nothing more was wanted than {len(wanted)}"
    left = list(observed)
    for want in wanted:
        found = next((entry for entry in left if _fits(want, entry)), None)
        if found is None:
            return f"wanted: {' '.join(want)}"
        left.remove(found)
    return None if not left else f"not wanted: {said([left[0]])}"


def said(observed: Sequence[Observed]) -> str:
    """Format observed answers as a script would."""
    if not observed:
        return "-"
    return "; ".join(
        " ".join([who, *(f"{name}={value}" for name, value in words.items())])
        for who, words in observed
    )
