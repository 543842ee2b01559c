"""Trogdor for real: a coordinator and agents over HTTP, beside Apache Kafka's own."""
