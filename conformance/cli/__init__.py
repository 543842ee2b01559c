"""The command `conformance`: one module a command, registered in `main`."""

import os
from pathlib import Path

# kio lets Hypothesis compute tables of characters, which leaves them in the present folder.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(_CACHE / "coordinator-sim/hypothesis"))
