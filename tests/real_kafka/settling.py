"""A real broker's own metadata follows its controller's: what was changed shows a moment later."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

PATIENCE_S: Final = 15
PAUSE_S: Final = 0.1

_T = TypeVar("_T")


def told_in_the_end(ask: Callable[[], _T], expected: _T) -> _T:
    """What is told of something that is only looked at: asked again for a while if unexpected."""
    until_s = time.monotonic() + PATIENCE_S
    while (told := ask()) != expected and time.monotonic() < until_s:
        time.sleep(PAUSE_S)
    return told
