"""Cases: commands that an agent runs as work, on this host and in real time."""

from coordinator_sim_conformance.trogdor_cases.case import exec_case
from coordinator_sim_conformance.trogdor_cases.one_task import Exit, OneTaskAgent
from coordinator_sim_conformance.trogdor_cases.story import Has, Starts, expect
from coordinator_sim_conformance.trogdor_cases.task_specs import external_command
from coordinator_sim_conformance.trogdor_cases.trogdor import Json

_LONG_MS = 20_000
_SUCCEEDED = "Task succeeded with status "
_FAILED = "Task failed with status "


def _shell(agent: OneTaskAgent, script: str, duration_ms: int = _LONG_MS, **more: Json) -> Exit:
    """How a script ends."""
    return agent.run(external_command("sh", "-c", script, duration_ms=duration_ms, **more))


@exec_case("J15", "ExternalCommandWorkerTest")
def exit_code_of_a_command_decides(agent: OneTaskAgent) -> None:
    """A command that exits with 0 succeeds; another code fails, as does one that cannot start."""
    good = agent.run(external_command("true", duration_ms=_LONG_MS))
    expect("true", good.last_line, f"{_SUCCEEDED}null")

    bad = agent.run(external_command("false", duration_ms=_LONG_MS))
    expect("false", bad.last_line, f"{_FAILED}null and error exited with return code 1")

    missing = agent.run(external_command("/dev/null/non/existent", duration_ms=_LONG_MS))
    failed = f"{_FAILED}null and error Unable to start process"
    expect("no such file", missing.last_line, Starts(failed))

    nothing = agent.run(external_command(duration_ms=_LONG_MS))
    expect("no command", nothing.last_line, f"{failed}: No command specified")


@exec_case("J16", "ExternalCommandWorkerTest.testProcessForceKillTimeout")
def command_reads_its_task_from_one_line(agent: OneTaskAgent) -> None:
    """A command gets one line of JSON, with the task's id and the workload as it was given."""
    workload = {"foo": "value1", "bar": 123}
    # The line comes back as a status that is a text: quotes are changed to stay out of its way.
    script = """read -r line; printf '{"status": "%s"}\\n' "$(echo "$line" | tr '"' "'")" """
    ended = _shell(agent, script, workload=workload)

    line = "{'id':'task0','workload':{'foo':'value1','bar':123}}"
    expect("last line", ended.last_line, f'{_SUCCEEDED}"{line}"')


@exec_case("J17", "ExternalCommandWorker.StdoutMonitor")
def lines_of_a_command_set_status_and_error(agent: OneTaskAgent) -> None:
    """A line of JSON sets the status or ends the work by an error; other lines are passed over."""
    log = """echo 'not json'; echo '{"status": "green", "log": "m"}'; echo '[1]'"""
    expect("status", _shell(agent, log).last_line, f'{_SUCCEEDED}"green"')

    boom = """echo '{"error": "boom"}'; exec sleep 20"""
    expect("error", _shell(agent, boom).last_line, f"{_FAILED}null and error boom")

    # An empty error ends the work too, and the code of its exit comes too late.
    empty = """echo '{"status": {"a": 1}, "error": ""}'; exec sleep 20"""
    ended = _shell(agent, empty)
    expect("exit code", ended.code, 0)
    expect("text", ended.said, Has(_SUCCEEDED))
    expect("status", "".join(ended.said.rpartition(_SUCCEEDED)[2].split()), '{"a":1}')


@exec_case("J18", "ExternalCommandWorker.stop", is_quirk=True)
def command_that_its_duration_ends_has_failed(agent: OneTaskAgent) -> None:
    """A command that runs until the task's end is terminated, which counts as an error."""
    ended = agent.run(external_command("sleep", "3600", duration_ms=700))

    expect("last line", ended.last_line, f"{_FAILED}null and error exited with return code 143")


_LOOP = "i=0; while [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done"
"""Goes on for ten seconds, and lets a trap run every tenth of one."""


@exec_case("J19", "ExternalCommandWorkerTest.testProcessForceKillTimeout")
def command_that_goes_on_is_killed(agent: OneTaskAgent) -> None:
    """A command is asked to end by SIGTERM, and killed when its grace period is over."""
    asked = _shell(agent, f"trap 'exit 3' TERM; {_LOOP}", duration_ms=700)
    ended = f"{_FAILED}null and error exited with return code 3"
    expect("one that ends", asked.last_line, ended)

    deaf = f"trap '' TERM; {_LOOP}"
    killed = _shell(agent, deaf, duration_ms=700, shutdownGracePeriodMs=1)
    ended = f"{_FAILED}null and error exited with return code 137"
    expect("one that goes on", killed.last_line, ended)


@exec_case("J19.2", "ExternalCommandWorker.stop", "java.lang.Process.destroy")
def command_that_is_to_end_is_not_heard(agent: OneTaskAgent) -> None:
    """Output of a command after SIGTERM changes neither its status nor its error."""
    last_words = (
        """trap 'echo "{\\"status\\": \\"late\\", \\"error\\": \\"late\\"}"; exit 3' TERM"""
    )
    ended = _shell(agent, f"{last_words}; {_LOOP}", duration_ms=700)

    expect("exit code", ended.code, 1)
    # Whether it dies of its closed output or exits first is up to the two processes.
    failed = f"{_FAILED}null and error exited with return code "
    expect("last line", ended.last_line, Starts(failed))
