"""What requirements are checked against: anything that answers requests of the group APIs."""
