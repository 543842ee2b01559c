"""Keep results of `conformance clients` for the page of the docs, without what it does not show.

    python -m tools.keep_client_results RESULT.json...

Each becomes `docs/client-results/NAME.json`: frames, and transcripts of what passed, are left out.
"""

import sys
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from coordinator_sim_conformance.running import Ending, Verdict
from coordinator_sim_conformance.verdicts.results import encoded, read_result

KEPT: Final = Path(__file__).resolve().parents[1] / "docs" / "client-results"


def slim(ending: Ending) -> Ending:
    """Return an ending as the page needs it."""
    differs = ending.verdict in {Verdict.FAILED, Verdict.UNKNOWN}
    return replace(ending, frames=(), transcript=ending.transcript if differs else ())


def main(paths: list[str]) -> None:
    """Keep each result under the name of its client."""
    for path in paths:
        result = read_result(Path(path))
        kept = replace(result, endings=tuple(map(slim, result.endings)))
        (KEPT / f"{result.target.name}.json").write_bytes(encoded(kept))


if __name__ == "__main__":
    main(sys.argv[1:])
