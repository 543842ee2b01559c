"""Settings of topics, brokers and groups by Kafka's names: types, values and their sources."""
