"""The subject of a commit: `area: what changes`, at most 72 characters, no riddle.

    python -m tools.commit_message FILE    # FILE holds the message, as git hands it to a hook

The hook `.git/hooks/commit-msg` is an executable file of two lines:

    #!/bin/sh
    exec .venv/bin/python -m tools.commit_message "$1"
"""

import re
import sys
from pathlib import Path
from typing import Final

from tools.prose import RULES

LONGEST: Final = 72
"""Characters of a subject."""
_FORM: Final = re.compile(r"[a-z0-9][\w./-]*(, [a-z0-9][\w./-]*)*: (?P<change>\S.*)")
_BY_GIT: Final = re.compile(r'Merge |Revert "|fixup! |squash! |amend! ')
"""Subjects that git writes."""


def faults(subject: str) -> list[str]:
    """What is wrong with a subject, each with the mend; nothing for one that git wrote."""
    if _BY_GIT.match(subject):
        return []
    found = []
    if len(subject) > LONGEST:
        found.append(f"it has {len(subject)} characters; shorten it to {LONGEST}")
    form = _FORM.fullmatch(subject)
    if form is None:
        return [*found, "write `area: what changes`, such as `broker: close idle connections`"]
    for rule, pattern in RULES.items():
        hit = pattern.search(form["change"][:1].upper() + form["change"][1:])
        if hit is not None:
            found.append(f"{hit[0]!r} {rule}; name the thing and what happens to it")
    return found


def main(arguments: list[str]) -> int:
    """Check the first line of a file that is no comment; 1 if it has a fault."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    lines = Path(arguments[0]).read_text(encoding="utf-8").splitlines()
    subject = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    found = faults(subject)
    sys.stderr.writelines(f"commit subject {subject!r}: {fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
