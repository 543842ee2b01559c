"""The roles of members and brokers in a group, as fault rules and scenarios name them."""

from typing import Final

LEADER: Final = "leader"
"""The member that JoinGroup gives the subscriptions of all, and that assigns."""
FOLLOWER: Final = "follower"
"""Any other member of the group."""
ROLES: Final = (LEADER, FOLLOWER)
COORDINATOR: Final = "coordinator"
"""The broker that leads the group's offsets partition."""
