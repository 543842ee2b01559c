"""The order of plugin versions, as Maven compares artefact versions.

Connect uses this order to decide which of two copies of a class it runs.

Source: maven-artifact, org/apache/maven/artifact/versioning/ComparableVersion.java.
"""

import re
from typing import Final

_WORD: Final = re.compile(r"(\d+|[^\d.\-]+)|([.\-])")
_QUALIFIERS: Final = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
"""Known qualifiers in order; the empty one is the release itself."""
_SAME: Final = {"ga": "", "final": "", "release": "", "cr": "rc"}
_SHORT: Final = {"a": "alpha", "b": "beta", "m": "milestone"}
"""Abbreviations, which count only where a number follows at once, as in `1.0-b2`."""
_RELEASE: Final = _QUALIFIERS.index("")

Part = tuple[int, int, str]
"""Kind (0 qualifier, 1 group begun by a hyphen, 2 number), rank, text."""


def version_key(version: str) -> tuple[Part, ...]:
    """Return a key that orders versions from oldest to newest.

    Numbers compare as numbers, `1.0` equals `1`, a qualifier such as `rc` stands before its
    release, an unknown one after all known. Every key ends with an end mark.
    """
    parts: list[Part] = []
    words = _words(version.lower())
    for index, word in enumerate(words):
        number_follows = index + 1 < len(words) and words[index + 1].isdigit()
        if word.isdigit():
            parts.append((2, int(word), ""))
        elif word == "-":
            _trim(parts)
            if number_follows:
                parts.append((1, 0, ""))
        elif word != ".":
            _trim(parts)
            parts.append(_qualifier(_SHORT.get(word, word) if number_follows else word))
    _trim(parts)
    return (*parts, (0, _RELEASE, ""))


def _words(version: str) -> list[str]:
    return [match.group(0) for match in _WORD.finditer(version)]


def _qualifier(word: str) -> Part:
    text = _SAME.get(word, word)
    if text in _QUALIFIERS:
        return (0, _QUALIFIERS.index(text), "")
    return (0, len(_QUALIFIERS), text)


def _trim(parts: list[Part]) -> None:
    """Remove parts that do not affect the order: zeros, and names of the release."""
    while parts and parts[-1] in {(2, 0, ""), (0, _RELEASE, "")}:
        parts.pop()
