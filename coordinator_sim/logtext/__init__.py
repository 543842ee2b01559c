"""The text of brokers' and clients' logs, in both directions."""
