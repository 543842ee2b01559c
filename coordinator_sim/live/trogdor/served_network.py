"""The faults of Trogdor's agents on nodes of a served cluster: its links and brokers, no kernel.

An agent's commands are those that Kafka's agents run. Here `iptables` and `tc` act on the links
between the listener of a node and the brokers of another one, and `jcmd` and `kill` know the
brokers of a node as Java processes.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import httpx

from coordinator_sim.live.trogdor.host_platform import Allowed, HostPlatform, Told
from coordinator_sim.trogdor.fault_work import Argv, Output
from coordinator_sim.trogdor.topology import Topology

_FIRST_PID: Final = 1 << 40
"""Process ids of brokers, far above those of a host."""
_SIGNALS: Final = {"-SIGSTOP": "pause", "-SIGCONT": "resume"}

Place = tuple[tuple[int, ...], str]
"""What a node has: its brokers, and the listener that its clients connect by."""


class ServedNetwork:
    """The links and brokers of a served cluster.

    Args:
        control: URL of its control surface.
        places: What each node has.
    """

    def __init__(self, control: str, places: Mapping[str, Place]) -> None:
        self.places = places
        self._client = httpx.AsyncClient(base_url=control, trust_env=False)
        self._cuts: Counter[tuple[int, str]] = Counter()
        self._slow: dict[str, dict[str, int]] = {}

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def call(self, method: str, path: str, body: Any = None) -> str:  # noqa: ANN401 - JSON
        """Ask the control surface; an empty text, or why it was refused."""
        try:
            answer = await self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            return f"{path}: {error or type(error).__name__}"
        return str(answer.json()["error"]) if answer.is_error else ""

    async def cut(self, node: str, clients_of: str, *, count: int) -> str:
        """Cut the clients of a node off from the brokers of another, once more or once less."""
        brokers, _ = self.places[node]
        _, listener = self.places[clients_of]
        for broker in brokers:
            self._cuts[broker, listener] += count
        return await self._apply([(broker, listener) for broker in brokers])

    async def slow_down(self, node: str, way: Mapping[str, int] | None) -> str:
        """Let what leaves a node be late and narrow, or as fast as ever."""
        if way is None:
            self._slow.pop(node, None)
        else:
            self._slow[node] = {**self._slow.get(node, {}), **way}
        brokers, listener = self.places[node]
        links = [(broker, other) for broker in brokers for _, other in self.places.values()]
        links += [(broker, listener) for own, _ in self.places.values() for broker in own]
        return await self._apply(list(dict.fromkeys(links)))

    async def signal(self, broker: int, name: str) -> str:
        """Stop a broker's process or let it go on."""
        return await self.call("POST", f"/v1/brokers/{broker}/{_SIGNALS[name]}")

    async def _apply(self, links: list[tuple[int, str]]) -> str:
        """Tell the cluster what these links let through now."""
        of_broker = {each: node for node, (own, _) in self.places.items() for each in own}
        of_listener = {listener: node for node, (_, listener) in self.places.items()}
        for broker, listener in links:
            body = {
                "broker": broker,
                "listener": listener,
                "cut": self._cuts[broker, listener] > 0,
                "to_clients": self._slow.get(of_broker[broker], {}),
                "to_broker": self._slow.get(of_listener[listener], {}),
            }
            failure = await self.call("PUT", "/v1/links", body)
            if failure:
                return failure
        return ""


class ServedPlatform(HostPlatform):
    """A node of a served cluster.

    Args:
        node: Its name.
        topology: All nodes.
        network: See `ServedNetwork`.
        told: See `Told`.
    """

    def __init__(self, node: str, topology: Topology, network: ServedNetwork, told: Told) -> None:
        super().__init__(node, topology, Allowed(commands=True), told)
        self._network = network
        self._brokers, _ = network.places[node]

    def devices(self) -> list[str]:
        """One device: the links of the node."""
        return ["served0"]

    async def _run(self, argv: Argv, output: Output) -> None:
        act = self._acts.get(argv[:2] if argv[0] == "sudo" else argv[:1])
        if act is not None:
            failure = await act(self, argv)
            if failure is not None:
                output(None if failure else "", failure)
                return
        await super()._run(argv, output)

    async def _iptables(self, argv: Argv) -> str | None:
        count = 1 if argv[2] == "-A" else -1
        return await self._network.cut(self.node, argv[-1], count=count)

    async def _tc(self, argv: Argv) -> str | None:
        if argv[3] == "del":
            return await self._network.slow_down(self.node, None)
        said = dict(pairwise(argv))
        way: dict[str, int] = {}
        if "delay" in said:
            way["latency_ms"] = int(said["delay"].removesuffix("ms"))
        if "rate" in said:
            way["kbit_per_s"] = int(said["rate"].removesuffix("kbit"))
        return await self._network.slow_down(self.node, way)

    async def _kill(self, argv: Argv) -> str | None:
        broker = int(argv[2]) - _FIRST_PID
        if broker not in self._brokers:
            return None
        return await self._network.signal(broker, argv[1])

    def _without_running(self, argv: Argv) -> str | None:
        if argv[0] != "jcmd":
            return super()._without_running(argv)
        brokers = [f"{_FIRST_PID + each} kafka.Kafka broker-{each}" for each in self._brokers]
        return "\n".join([*brokers, super()._without_running(argv) or ""])

    _acts: Final = {
        ("sudo", "iptables"): _iptables,
        ("sudo", "tc"): _tc,
        ("kill",): _kill,
    }
