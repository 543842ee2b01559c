"""Kafka's requests and responses as structs, written from its message schemas."""
