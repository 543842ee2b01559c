"""Work in a copy of this process, so that everything stays as it is."""

import json
import os
import traceback
from collections.abc import Callable
from typing import Any


def apart(work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever JSON has
    """Do something in a copy of this process, and return what it did as JSON.

    Raises:
        RuntimeError: it failed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as pipe:
                json.dump(work(), pipe)
            status = 0
        except Exception:  # noqa: BLE001 - shown here, and raised by the parent
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if not answer:
        raise RuntimeError("the copy of this process failed: its traceback is above")
    return json.loads(answer)
