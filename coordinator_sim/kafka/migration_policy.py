"""Which way a group may change its type while it has members.

Source: kafka 4.4, group-coordinator/.../ConsumerGroupMigrationPolicy.java.
"""

from enum import Enum, unique


@unique
class MigrationPolicy(Enum):
    """The values of `group.consumer.migration.policy`."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group with members may become a consumer group."""
        return self in {MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL}

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group left with classic members alone becomes a classic group."""
        return self in {MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL}
