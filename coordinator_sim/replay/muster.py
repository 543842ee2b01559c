"""Who is a member at one moment of a replay, found by member id and by instance id."""

from coordinator_sim.replay.players import Player


class Muster:
    """The players that believe to be members, and the ids of all.

    No question looks at players that are long gone: a trace of years has many.
    """

    def __init__(self) -> None:
        self._members: dict[int, Player] = {}
        self._by_id: dict[str, Player] = {}
        self._by_instance: dict[str, Player] = {}

    def know(self, player: Player) -> None:
        """Remember the player's present member id."""
        self._by_id[player.member_id] = player

    def admit(self, player: Player) -> None:
        """Make it a member."""
        player.is_member = True
        self._members[player.actor.index] = player
        self.know(player)
        if player.actor.group_instance_id is not None:
            self._by_instance.setdefault(player.actor.group_instance_id, player)

    def dismiss(self, player: Player) -> None:
        """Make it a client without membership."""
        player.is_member = False
        self._members.pop(player.actor.index, None)

    def end(self, player: Player) -> None:
        """End its process."""
        player.is_over = True
        self.dismiss(player)

    def take_instance(self, newcomer: Player) -> Player | None:
        """Note who has an instance id now; return who had it before, None for nobody alive."""
        instance_id = newcomer.actor.group_instance_id
        if instance_id is None:
            return None
        former = self._by_instance.get(instance_id)
        self._by_instance[instance_id] = newcomer
        return None if former is None or former is newcomer or former.is_over else former

    def named(self, member_id: str | None) -> Player | None:
        """Return the player with a member id; None for an unknown id."""
        player = self._by_id.get(member_id or "")
        return player if player is not None and player.member_id == member_id else None

    def rejoining(self, now_ms: int) -> list[Player]:
        """Return the living members that wait for no answer; the silent ones are forgotten."""
        silent = [each for each in self._members.values() if each.is_silent(now_ms)]
        for player in silent:
            del self._members[player.actor.index]
        return [each for each in self._members.values() if not each.is_parked]
