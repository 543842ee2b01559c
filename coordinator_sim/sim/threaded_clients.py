"""The Kafka clients of one process, and its threads that use them."""

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clock import Action, Alarmed
from coordinator_sim.connect.thread import Blocking, Thread
from coordinator_sim.sim.kafka_client import KafkaClient
from coordinator_sim.sim.world import World


class ThreadedClients(Alarmed):
    """Threads over Kafka clients, which can be frozen and killed with their process.

    Args:
        world: Shared parts of the run.
        process: Name of the process in the network.
    """

    def __init__(self, world: World, process: str) -> None:
        super().__init__(world.environment)
        self._world = world
        self._process = process
        self._clients: dict[str, KafkaClient] = {}
        self._threads: list[Thread] = []
        self._is_alive = True
        self._machine = world.clock_of(process)
        self._reading = self._machine.read_by(self._run)
        self._is_running = False
        self._late: list[Action] | None = None

    def pause(self) -> None:
        """Freeze the process: network events wait, nothing is sent."""
        if self._late is None:
            self._late = []

    def resume(self) -> None:
        """Continue, beginning with the events that arrived meanwhile."""
        late, self._late = self._late, None
        for action in late or ():
            action()
        self._run()

    def kill(self) -> None:
        """End the process: the kernel closes its connections."""
        self._is_alive = False
        self._machine.forget(self._reading)
        self.switch_alarm_off()
        for client in self._clients.values():
            client.close()
        self._threads.clear()

    def woken(self) -> None:
        """Let the threads run on: what one of them waits for is there."""
        self._happened(_nothing)

    def _begin(self, main: Blocking[None]) -> Thread:
        """Run a thread from now on."""
        thread = Thread(main)
        self._threads.append(thread)
        self.woken()
        return thread

    def _client(self, name: str) -> KafkaClient:
        """The client of a name, made when it is first wanted."""
        client = self._clients.get(name)
        if client is None:
            client_id = f"{self._process}-{name}"
            client = self._clients[name] = KafkaClient(
                self._world, self._process, client_id, self._happened, self._reading
            )
        return client

    def _on_alarm(self) -> None:
        self._happened(self._expire)

    def _expire(self) -> None:
        for client in list(self._clients.values()):
            client.expire()

    def _happened(self, action: Action) -> None:
        """Apply an event of the network or the clock, and let the threads run on."""
        if not self._is_alive:
            return
        if self._late is not None:
            self._late.append(action)
            return
        action()
        self._run()

    def _run(self) -> None:
        if self._is_running or self._late is not None:
            return
        self._is_running = True
        now_ms = self._reading.now_ms
        is_moving = True
        while is_moving and self._is_alive:
            is_moving = False
            for thread in list(self._threads):
                is_moving |= thread.run(now_ms)
        self._is_running = False
        if not self._is_alive:
            return
        self._threads = [thread for thread in self._threads if not thread.is_finished]
        deadline_ms = min(
            (
                *(thread.deadline_ms for thread in self._threads),
                *(client.deadline_ms for client in self._clients.values()),
            ),
            default=FOREVER,
        )
        if deadline_ms >= FOREVER:
            self.switch_alarm_off()
        else:
            self.set_alarm(self._reading.true_us(deadline_ms))


def _nothing() -> None:
    """Do nothing; used only to let the threads run on."""
