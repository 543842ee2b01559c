import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients, for the round trip of the offsets log: commits every kind of offset, or
 * prints what a broker answers. Run by round_trip.py with {@code java -cp JARS OffsetsClient.java}.
 */
public final class OffsetsClient {
    private static final String TOPIC = "orders";
    private static final int PARTITIONS = 3;

    private final String bootstrap;

    private OffsetsClient(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] args) throws Exception {
        OffsetsClient client = new OffsetsClient(args[1]);
        switch (args[0]) {
            case "prepare" -> client.prepare();
            case "commit" -> client.commit();
            case "fetch" -> client.fetch(List.of(args).subList(2, args.length));
            case "describe" -> client.describe(List.of(args).subList(2, args.length));
            default -> throw new IllegalArgumentException("unknown command " + args[0]);
        }
    }

    /** Creates the topic, and by asking for a coordinator the offsets topic. */
    private void prepare() throws Exception {
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(TOPIC, PARTITIONS, (short) 1))).all().get();
            admin.listConsumerGroupOffsets("nobody").all().get();
        }
    }

    /** A consumer, a group of offsets alone, deletions, and transactions with every end. */
    private void commit() throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("plain")) {
            consumer.subscribe(List.of(TOPIC));
            while (consumer.assignment().size() < PARTITIONS) {
                consumer.poll(Duration.ofMillis(100));
            }
            consumer.commitSync(Map.of(partition(0), new OffsetAndMetadata(1)));
            consumer.commitSync(Map.of(
                partition(0), new OffsetAndMetadata(11, java.util.Optional.of(0), "first"),
                partition(1), new OffsetAndMetadata(22, "zweite é")));
        }
        try (Admin admin = admin()) {
            admin.alterConsumerGroupOffsets("simple", Map.of(
                partition(0), new OffsetAndMetadata(100, "kept"),
                partition(2), new OffsetAndMetadata(300, "deleted"))).all().get();
            admin.deleteConsumerGroupOffsets("simple", Set.of(partition(2))).all().get();
            admin.alterConsumerGroupOffsets("gone", offsets(7)).all().get();
            admin.deleteConsumerGroups(List.of("gone")).all().get();
        }
        KafkaProducer<byte[], byte[]> open = producer("tx-open");
        open.initTransactions();
        try (KafkaProducer<byte[], byte[]> producer = producer("tx-ended")) {
            producer.initTransactions();
            send(producer, "txn", 40);
            producer.commitTransaction();
            send(producer, "txn", 50);
            producer.abortTransaction();
            send(producer, "simple", 41);
            producer.commitTransaction();
        }
        send(open, "txn", 60);
        // The process ends with this transaction open, as a crash would leave it.
        Runtime.getRuntime().halt(0);
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String group, long offset) {
        producer.beginTransaction();
        producer.sendOffsetsToTransaction(offsets(offset), new ConsumerGroupMetadata(group));
        producer.flush();
    }

    /** One line an offset: group, topic, partition, offset, leader epoch, metadata. */
    private void fetch(List<String> groups) throws Exception {
        try (Admin admin = admin()) {
            for (String group : groups) {
                Map<TopicPartition, OffsetAndMetadata> found =
                    admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
                Map<String, String> lines = new TreeMap<>();
                found.forEach((tp, offset) -> lines.put(tp.toString(), String.join("\t",
                    group, tp.topic(), String.valueOf(tp.partition()),
                    String.valueOf(offset.offset()),
                    String.valueOf(offset.leaderEpoch().orElse(-1)), offset.metadata())));
                lines.values().forEach(System.out::println);
            }
        }
    }

    /** One line a group: its id, state, assignor and members' client ids. */
    private void describe(List<String> groups) throws Exception {
        try (Admin admin = admin()) {
            Map<String, ConsumerGroupDescription> found =
                admin.describeConsumerGroups(groups).all().get();
            for (String group : groups) {
                ConsumerGroupDescription description = found.get(group);
                List<String> members = new ArrayList<>();
                for (MemberDescription member : description.members()) {
                    members.add(member.clientId() + "=" + member.assignment().topicPartitions().stream()
                        .map(TopicPartition::toString).sorted().toList());
                }
                members.sort(null);
                System.out.println(String.join("\t", group, description.groupState().toString(),
                    description.partitionAssignor(), members.toString()));
            }
        }
    }

    private static TopicPartition partition(int index) {
        return new TopicPartition(TOPIC, index);
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(long offset) {
        return Map.of(partition(1), new OffsetAndMetadata(offset, "in a transaction"));
    }

    private Admin admin() {
        return Admin.create(settings());
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group) {
        Properties settings = settings();
        settings.put("group.id", group);
        settings.put("group.protocol", "classic");
        settings.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private KafkaProducer<byte[], byte[]> producer(String transactionalId) {
        Properties settings = settings();
        settings.put("transactional.id", transactionalId);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }
}
