"""What consumer and share groups have in common, as in Kafka's package of that name."""
