"""The one place where the errors of a command line end: a line on stderr and an exit code.

The project's commands share it, so that all of them end in the same way. Where a command was asked
for JSON, its failure is JSON on stdout too.
"""

import json
import os
import sys
from typing import Final, NoReturn, cast

import typer

from coordinator_sim.cli.printing import guard_streams
from coordinator_sim.errors import (
    CoordinatorSimError,
    DataError,
    InvariantViolation,
    WireFormatError,
)

EXIT_PROBLEMS_FOUND: Final = 1
EXIT_MISUSE: Final = 2
EXIT_INTERRUPTED: Final = 130
"""What a shell says of a command that Ctrl-C ended."""

# What typer raises for a command line it cannot read; it exports the child of that class alone.
_UsageError: Final = cast("type[typer.BadParameter]", typer.BadParameter.__base__)


def run_command_line(app: typer.Typer, name: str) -> NoReturn:
    """Run a command line and leave: 0 is ok, 1 problems found, 2 misuse; never a traceback.

    Args:
        app: The commands.
        name: What a user types for them.

    Raises:
        SystemExit: always.
    """
    try:
        guard_streams()
        code = app(standalone_mode=False)
        sys.stdout.flush()
        if code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt  # noqa: TRY301 - typer turned it into a code
    except _UsageError as error:
        _fail_usage(error, name)
    except InvariantViolation as error:
        _fail(f"{error}; a bug of {name}: report it with this command", EXIT_PROBLEMS_FOUND)
    except (DataError, WireFormatError) as error:
        _fail(str(error), EXIT_PROBLEMS_FOUND)
    except CoordinatorSimError as error:
        _fail(str(error), EXIT_MISUSE)
    except BrokenPipeError:
        # The reader of our output went away; nothing is left to say, not even at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_PROBLEMS_FOUND)
    except OSError as error:
        place = str(error.filename or "the system").replace("\n", "\\n")
        _fail(f"{place}: {error.strerror or error}", EXIT_MISUSE)
    except BaseException as error:
        if not _is_interrupted(error):
            raise
        _fail("interrupted", EXIT_INTERRUPTED)
    sys.exit(code)


def _is_interrupted(error: BaseException | None) -> bool:
    """Whether an error only followed from Ctrl-C, as those of a JVM that is being left."""
    while error is not None and not isinstance(error, KeyboardInterrupt | typer.Abort):
        error = error.__cause__ or error.__context__
    return error is not None


def _fail_usage(error: typer.BadParameter, name: str) -> NoReturn:
    """Say what is wrong with the command line, and which help to read."""
    message = error.format_message().rstrip(".")
    command = name if error.ctx is None else error.ctx.command_path
    _fail(f"{message[:1].lower()}{message[1:]}; see {command} --help", EXIT_MISUSE)


def _fail(message: str, code: int) -> NoReturn:
    """Say what is wrong in one line, as JSON too where that was asked for, and leave."""
    from coordinator_sim.cli.console import PrintableConsole

    console = PrintableConsole(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"error: {message}", markup=False)
    options = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    if "--json" in options:
        sys.stdout.write(json.dumps({"error": message}) + "\n")
        sys.stdout.flush()
    sys.exit(code)
