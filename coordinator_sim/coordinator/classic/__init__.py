"""Classic groups: their members, rebalances and generations."""
