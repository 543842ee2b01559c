"""What Kafka says, as plain data: error codes, API keys, names, log records, states, profiles."""
