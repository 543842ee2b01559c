"""Assignors that are Python functions: found, and asked within a bound of time."""

import importlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType

from coordinator_sim.assignors.foreign import contract
from coordinator_sim.errors import ConfigError, described


class _TooLong(BaseException):
    """Raised inside a function that has used up its time; nothing there should catch it."""


def guarded(name: str, function: contract.AssignFunction) -> contract.AssignFunction:
    """Return the function, whose failures are faults that name it.

    Args:
        name: Name of the assignor.
        function: Asked with topics and members.
    """

    def ask(topics: contract.Topics, members: tuple[contract.Member, ...]) -> contract.Answer:
        try:
            with _bounded(contract.TIME_BOUND_S):
                return function(topics, members)
        except _TooLong:
            partitions = sum(map(len, topics.values()))
            raise contract.AssignorFault(
                f"assignor {name!r} is not done after {contract.TIME_BOUND_S:g} s of CPU with "
                f"{len(members)} members and {partitions} partitions"
            ) from None
        except contract.AssignorFault:
            raise
        except Exception as error:
            raise contract.AssignorFault(
                f"assignor {name!r} raises {described(error)}, with {len(members)} members"
            ) from error

    return ask


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Interrupt the block once it has used so much CPU.

    Only the main thread of a POSIX system can be interrupted: elsewhere a block is not bounded.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def function_at(own: contract.OwnAssignor) -> contract.AssignFunction:
    """Return the function that `module:function` or `file.py:function` names.

    Raises:
        ConfigError: there is none; says what is missing.
    """
    where, colon, attribute = own.target.rpartition(":")
    if not colon or not where or not attribute.isidentifier():
        raise ConfigError(
            f"assignor {own.target!r}: wants a file or module and a function, as my.py:assign"
        )
    module = _module(own, where)
    function: contract.AssignFunction | None = getattr(module, attribute, None)
    if not callable(function):
        raise ConfigError(f"assignor {own.target}: {where} has no function {attribute!r}")
    return function


def _module(own: contract.OwnAssignor, where: str) -> ModuleType:
    file = Path(own.folder) / where
    if file.suffix != ".py":
        with _loading(own, Path(own.folder)):
            return importlib.import_module(where)
    if not file.is_file():
        raise ConfigError(f"assignor {own.target}: {where}: no such file")
    spec = importlib.util.spec_from_file_location(f"assignor_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"assignor {own.target}: {where} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while they are made.
    sys.modules[spec.name] = module
    with _loading(own, file.parent):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _loading(own: contract.OwnAssignor, folder: Path) -> Iterator[None]:
    """Find modules in a folder too, as a script's own is; whatever a module raises is one line."""
    entry = str(folder)
    sys.path.insert(0, entry)
    try:
        yield
    except Exception as error:
        raise ConfigError(f"assignor {own.target} cannot be loaded: {described(error)}") from error
    finally:
        sys.path.remove(entry)
