"""Cases: an agent that runs one task, prints how it went, and ends."""

from coordinator_sim_conformance.trogdor_cases.case import exec_case
from coordinator_sim_conformance.trogdor_cases.one_task import OneTaskAgent
from coordinator_sim_conformance.trogdor_cases.story import Has, Starts, expect
from coordinator_sim_conformance.trogdor_cases.task_specs import external_command, process_stop


@exec_case("G15", "AgentTest.testAgentExecWithTimeout", "AgentTest.testAgentExecWithNormalExit")
def one_task_is_run_and_told(agent: OneTaskAgent) -> None:
    """An agent for one task ends with 0 where it succeeds and 1 where it fails, and says which."""
    halted = """echo '{"status": "halted"}'"""
    good = agent.run(external_command("sh", "-c", halted, duration_ms=10_000))

    expect("exit code", good.code, 0)
    expect("text", good.said, Starts("Waiting for completion of task:{"))
    expect("last line", good.last_line, 'Task succeeded with status "halted"')

    failed = """echo '{"status": "halted", "error": "bad"}'"""
    bad = agent.run(external_command("sh", "-c", failed, duration_ms=10_000))
    expect("exit code", bad.code, 1)
    expect("last line", bad.last_line, 'Task failed with status "halted" and error bad')


@exec_case("G16", "Agent.exec")
def task_of_another_node_is_not_run(agent: OneTaskAgent) -> None:
    """An agent for one task refuses a task that is for other nodes, and names them."""
    ended = agent.run(process_stop("node09", process="X", start_ms=0, duration_ms=10))

    expect("exit code", ended.code, 1)
    refusal = (
        "This task is not configured to run on this node.  "
        "It runs on node(s): node09, whereas this node is node02"
    )
    expect("text", ended.said, Has(refusal))
