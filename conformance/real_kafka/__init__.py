"""Real Apache Kafka, started on demand: brokers, tools, Java clients, Connect workers."""
