"""What happens on purpose to responses: some are lost, late, doubled, or overtaken by the next.

A fault is for a member by name, or for whoever has a role in a group when the response leaves. The
network knows neither roles nor requests: whoever sends a response says whom it is for.
"""

from coordinator_sim.kafka.api_keys import ApiKey

Target = str | tuple[str, str]
"""A member by name, or a group id with a role."""


class Meddling:
    """Faults of responses; each is used up by the first response that it fits.

    Attributes:
        is_on: Whether there ever was a fault: checked before each response.
        names_roles: Whether there ever was a fault for a role.
    """

    __slots__ = ("_copies", "_delays", "_losses", "_overtakings", "is_on", "names_roles")

    def __init__(self) -> None:
        self._losses: dict[tuple[Target, ApiKey], int] = {}
        self._copies: dict[tuple[Target, ApiKey], int] = {}
        self._delays: dict[tuple[Target, ApiKey], list[int]] = {}
        self._overtakings: dict[tuple[Target, ApiKey], list[int]] = {}
        self.is_on = False
        self.names_roles = False

    @property
    def is_pending(self) -> bool:
        """Whether some fault is not used up yet."""
        kinds = (self._losses, self._copies, self._delays, self._overtakings)
        return any(left for kind in kinds for left in kind.values())

    def lose(self, target: Target, api: ApiKey, count: int) -> None:
        """Lose the next `count` responses of the API to the target."""
        self._losses[target, api] = self._losses.get((target, api), 0) + count
        self._add(target)

    def delay(self, target: Target, api: ApiKey, count: int, *, by_us: int) -> None:
        """Delay the next `count` responses of the API to the target by the given time."""
        self._delays.setdefault((target, api), []).extend([by_us] * count)
        self._add(target)

    def double(self, target: Target, api: ApiKey, count: int) -> None:
        """Send the next `count` responses of the API to the target twice."""
        self._copies[target, api] = self._copies.get((target, api), 0) + count
        self._add(target)

    def put_behind(self, target: Target, api: ApiKey, count: int, *, within_us: int) -> None:
        """Let the next `count` responses of the API be overtaken by the next of their connection.

        Args:
            target: Whose responses.
            api: Their API.
            count: How many.
            within_us: Time after which a response leaves alone.
        """
        self._overtakings.setdefault((target, api), []).extend([within_us] * count)
        self._add(target)

    def is_lost(self, targets: tuple[Target, ...], api: ApiKey) -> bool:
        """Whether this response is to be lost; counts it if so."""
        return _counted(self._losses, targets, api)

    def is_doubled(self, targets: tuple[Target, ...], api: ApiKey) -> bool:
        """Whether this response is to be sent twice; counts it if so."""
        return _counted(self._copies, targets, api)

    def delay_us(self, targets: tuple[Target, ...], api: ApiKey) -> int:
        """Return the delay of this response, 0 for none; a delay is used up."""
        return _used_up(self._delays, targets, api)

    def overtaken_within_us(self, targets: tuple[Target, ...], api: ApiKey) -> int:
        """Return how long this response waits to be overtaken, 0 for not; used up."""
        return _used_up(self._overtakings, targets, api)

    def _add(self, target: Target) -> None:
        self.is_on = True
        self.names_roles = self.names_roles or not isinstance(target, str)


def _counted(
    counts: dict[tuple[Target, ApiKey], int], targets: tuple[Target, ...], api: ApiKey
) -> bool:
    for target in targets:
        left = counts.get((target, api), 0)
        if left:
            counts[target, api] = left - 1
            return True
    return False


def _used_up(
    times: dict[tuple[Target, ApiKey], list[int]], targets: tuple[Target, ...], api: ApiKey
) -> int:
    for target in targets:
        left = times.get((target, api))
        if left:
            return left.pop(0)
    return 0
