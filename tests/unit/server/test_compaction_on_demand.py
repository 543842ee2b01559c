"""A partition's log is compacted when its operator asks."""

from coordinator_sim.kafka.partitioning import partition_for
from tests.unit.server.test_control import Running, coordinated, play


def test_log_of_a_group_is_compacted_and_the_group_loads_from_it() -> None:
    """Superseded records are gone at once; a topic that is not compacted is refused."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        for _ in range(3):
            await client.leave("app", await client.join("app"))
        partition = partition_for("app", 50)
        log = server.serving.server.cluster.logs.log_of("__consumer_offsets", partition)
        assert log is not None
        before = sum(map(len, log.chunks()))
        path = "/v1/topics/__consumer_offsets/partitions"
        done = await server.call("POST", f"{path}/{partition}/compact", {})
        assert done == {
            "topic": "__consumer_offsets",
            "partition": partition,
            "end_offset": log.end_offset,
        }
        assert sum(map(len, log.chunks())) < before
        await server.call("POST", f"{path}/99/compact", {}, status=404)
        await server.call("POST", "/v1/topics/orders/partitions/0/compact", {}, status=409)
        await client.close()
        await server.call("POST", "/v1/brokers/1/restart", {})
        found = await server.get("/v1/groups/app")
        assert isinstance(found, dict)
        assert found["state"] == "Empty"

    play(story)


def test_log_with_a_damaged_batch_is_left_as_it_is() -> None:
    """The answer names the partition, and what is wrong with the batch."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        await client.leave("app", await client.join("app"))
        await client.close()
        partition = partition_for("app", 50)
        log = server.serving.server.cluster.logs.log_of("__consumer_offsets", partition)
        assert log is not None
        batches = log._store._segments[0].batches  # type: ignore[attr-defined]
        batches[0] = batches[0][:-20] + b"\x7f" * 20
        path = f"/v1/topics/__consumer_offsets/partitions/{partition}/compact"
        refused = await server.call("POST", path, {}, status=409)
        assert isinstance(refused, dict)
        name = f"__consumer_offsets-{partition} cannot be compacted: "
        assert refused["error"].startswith(name)

    play(story)
