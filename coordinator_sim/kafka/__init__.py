"""Kafka's constants and formats: error codes, API keys, log records, states, profiles."""
