"""C-LEAVE: LeaveGroup on the wire."""

from coordinator_sim_conformance.clients.case import on_the_wire
from coordinator_sim_conformance.clients.driver import Driver
from coordinator_sim_conformance.clients.stage import Stage


@on_the_wire("C-LEAVE-01")
async def who_closes_leaves(stage: Stage) -> None:
    """A dynamic member that is closed sends LeaveGroup with its member id."""
    driver = await stage.start()
    sync = await stage.stable()
    _close(stage, driver)
    leave = await stage.request("LeaveGroup", after=sync)
    members = [each.member_id for each in leave.request.members]
    stage.expect(members == [sync.member_id], f"LeaveGroup of {sync.member_id}", str(leave))


@on_the_wire("C-LEAVE-02")
async def static_member_stays(stage: Stage) -> None:
    """A static member that is closed sends no LeaveGroup."""
    driver = await stage.start("static", group_instance_id="one")
    await stage.stable()
    _close(stage, driver)
    await stage.event("closed", of=driver)
    stage.expect_none(stage.all("LeaveGroup"), "no LeaveGroup of a static member")


@on_the_wire("C-LEAVE-03")
async def pending_member_leaves(stage: Stage) -> None:
    """A member that has been told no more than its id leaves with it."""
    driver = await stage.start("commands")
    refused = await stage.answered("JoinGroup", "MEMBER_ID_REQUIRED")
    stage.calm()
    joined = await stage.request("JoinGroup", after=refused)
    _close(stage, driver)
    leave = await stage.request("LeaveGroup", after=joined)
    stage.expect(
        leave.member_id == refused.response.member_id,
        f"LeaveGroup of {refused.response.member_id}",
        str(leave),
    )


@on_the_wire("C-LEAVE-05", is_quirk=True)
async def refused_leave_is_not_repeated(stage: Stage) -> None:
    """LeaveGroup answered with an error: it is not sent again, and the client closes."""
    driver = await stage.start("commands")
    sync = await stage.stable()
    stage.fail("LeaveGroup", "COORDINATOR_NOT_AVAILABLE", times=None)
    _close(stage, driver)
    leave = await stage.request("LeaveGroup", after=sync)
    await stage.until(
        lambda: stage.all("LeaveGroup", after=leave) or _closed(driver) or None,
        "the client closes",
    )
    stage.expect_none(stage.all("LeaveGroup", after=leave), "no second LeaveGroup")


def _closed(driver: Driver) -> bool:
    return any(event.kind == "closed" for event in driver.events)


def _close(stage: Stage, driver: Driver) -> None:
    stage.note("the application closes its client")
    stage.close_client(driver)
