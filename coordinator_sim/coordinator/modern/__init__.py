"""ModernGroup, the base of consumer and share groups, as in Kafka's package `modern`."""
