"""Trogdor: tasks that a coordinator has agents run on nodes, as Apache Kafka's own Trogdor does."""
