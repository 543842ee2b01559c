"""When the compiled loops are loaded, and that segments are read without them."""

import subprocess
import sys

import pytest

from coordinator_sim.log.columns.compiled import LOAD_AFTER, Loops

LOADED = "coordinator_sim.log.columns.compiled_loops"


def test_they_are_loaded_once_so_many_records_have_been_read() -> None:
    """A process that reads a small log does not pay for loading them."""
    pytest.importorskip("numba", reason="the extra `fast` is not installed")
    loops = Loops()

    loops.count(LOAD_AFTER - 1)
    assert loops.current is None
    loops.count(1)
    assert loops.current is not None
    assert loops.current.__name__ == LOADED


def test_without_the_extra_numpy_goes_on() -> None:
    """An interpreter in which numba cannot be imported reads with numpy, and asks once."""
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "from coordinator_sim.log.columns.compiled import LOOPS\n"
        "LOOPS.load_after(0); LOOPS.count(1)\n"
        "assert LOOPS.current is None and not LOOPS.load()\n"
        "import numpy as np\n"
        "from coordinator_sim.log.columns.chunks import read_records\n"
        "one = bytes((12, 0, 0, 0, 1, 1, 0)); at = np.array([0])\n"
        "table, odd = read_records(one + bytes(256), at, at + 7, at + 1)\n"
        "print(table.key_size.tolist(), odd.tolist())"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[-1] [False]\n"
