"""A recorded classic history played by members of the consumer protocol (KIP-848)."""
