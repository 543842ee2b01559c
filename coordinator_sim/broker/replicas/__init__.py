"""The logs of a cluster's partitions: which there are, whose they are, and their upkeep."""
