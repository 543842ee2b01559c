"""Real Apache Kafka from Maven Central: brokers, tools and Java clients, started on demand."""
