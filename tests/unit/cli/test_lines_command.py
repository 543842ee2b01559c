"""`coordinator-sim lines`: JSON lines through pipes."""

import subprocess
import sys

from tests.command_line import run_here


def run_lines(text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Feed that text to the command."""
    return subprocess.run(
        [sys.executable, "-m", "coordinator_sim", "lines", *options],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_answer_a_line() -> None:
    """Blank lines are passed over, wrong ones answered, and the last needs no line end."""
    done = run_lines('{"op":"init","startMs":5}\n\n \nnonsense\n{"op":"advance","ms":2}')
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert [answers[0], answers[2], len(answers)] == ['{"now":5}', '{"now":7}', 3]
    assert answers[1].startswith('{"error":"not JSON')


def test_a_caller_that_waits_for_each_answer_gets_it() -> None:
    """Each answer is flushed before the next line is read."""
    command = [sys.executable, "-m", "coordinator_sim", "lines", "--profile", "3.9"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b'{"op":"init"}\n', b'{"op":"advance","ms":1}\n'):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline().startswith(b'{"now":100000')


def test_an_unknown_profile_is_misuse() -> None:
    """Exit code 2 and the names that exist."""
    done = run_here("lines", "--profile", "5.0")
    assert done.returncode == 2
    assert "unknown profile '5.0'" in done.stderr
