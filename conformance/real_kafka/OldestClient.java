import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Consumer groups of the clients of Kafka 0.10.2, whose poll waits for the whole rebalance. */
public class OldestClient {
    private static final String TOPIC = "orders";
    private static final int PARTITIONS = 6;
    private static final int BATCH = 600;
    private static final long FIRST_MS = 1_700_000_000_000L;
    private static final long PATIENCE_MS = 30_000;
    private static String bootstrap;
    private static int produced;

    private final String assignor;
    private final Map<String, Member> members = new TreeMap<>();
    private final Map<Integer, List<String>> seen = new TreeMap<>();

    private OldestClient(String assignor) {
        this.assignor = assignor;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        for (String compression : List.of("none", "gzip", "snappy", "lz4")) {
            produce(compression);
        }
        new OldestClient("Range").grow();
        new OldestClient("RoundRobin").grow();
        seek();
    }

    private static void produce(String compression) throws Exception {
        Properties settings = settings();
        settings.put("compression.type", compression);
        settings.put("acks", "all");
        settings.put("linger.ms", "5");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int end = produced + BATCH; produced < end; produced++) {
                int partition = produced % PARTITIONS;
                ProducerRecord<String, String> record = new ProducerRecord<>(
                    TOPIC, partition, FIRST_MS + produced, "k", "" + produced);
                var sent = producer.send(record);
                if (produced + 1 == end) {
                    System.out.println(compression + " up to " + sent.get().offset());
                }
            }
        }
    }

    /** A member that polls in a thread of its own until it is told to leave. */
    private final class Member implements Runnable, ConsumerRebalanceListener {
        private final KafkaConsumer<String, String> consumer;
        private final Thread thread = new Thread(this);
        private volatile TreeSet<Integer> owned = new TreeSet<>();
        private volatile boolean isLeaving;

        Member(String name) {
            Properties settings = settings();
            settings.put("client.id", name);
            settings.put("group.id", "oldest-" + assignor);
            settings.put("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer." + assignor + "Assignor");
            settings.put("enable.auto.commit", "false");
            settings.put("auto.offset.reset", "earliest");
            settings.put("heartbeat.interval.ms", "200");
            consumer = consumer(settings);
            consumer.subscribe(List.of(TOPIC), this);
            thread.start();
        }

        @Override
        public void run() {
            while (!isLeaving) {
                for (ConsumerRecord<String, String> record : consumer.poll(50)) {
                    saw(record);
                }
            }
            consumer.commitSync();
            consumer.close();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            owned = new TreeSet<>();
            consumer.commitSync();
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            TreeSet<Integer> given = new TreeSet<>();
            partitions.forEach(place -> given.add(place.partition()));
            owned = given;
        }

        void leave() throws InterruptedException {
            isLeaving = true;
            thread.join();
        }
    }

    private void grow() throws Exception {
        for (String name : List.of("c0", "c1", "c2")) {
            members.put(name, new Member(name));
            await(this::isSettled);
            Map<String, TreeSet<Integer>> owners = new TreeMap<>();
            members.forEach((member, state) -> owners.put(member, state.owned));
            System.out.println(assignor + " " + owners);
            produce("none");
            await(this::hasAll);
        }
        members.remove("c0").leave();
        await(this::isSettled);
        produce("none");
        await(this::hasAll);
        for (Member member : members.values()) {
            member.leave();
        }
        System.out.println(assignor + " read " + verdict() + ", committed " + committed());
    }

    private static void seek() {
        TopicPartition place = new TopicPartition(TOPIC, 1);
        try (KafkaConsumer<String, String> consumer = consumer(settings())) {
            consumer.assign(List.of(place));
            OffsetAndTimestamp found = consumer.offsetsForTimes(
                Collections.singletonMap(place, FIRST_MS + BATCH)).get(place);
            System.out.println("at " + found.offset() + " " + (found.timestamp() - FIRST_MS));
            System.out.println("ends " + consumer.beginningOffsets(List.of(place)) + " "
                + consumer.endOffsets(List.of(place)));
            System.out.println("topics " + new TreeSet<>(consumer.listTopics().keySet()));
        }
    }

    private synchronized void saw(ConsumerRecord<String, String> record) {
        seen.computeIfAbsent(record.partition(), partition -> new ArrayList<>())
            .add(record.value());
    }

    private void await(BooleanSupplier condition) throws InterruptedException {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.getAsBoolean()) {
            if (System.currentTimeMillis() > end) {
                System.out.println("waited too long: " + verdict());
                Runtime.getRuntime().halt(1);
            }
            Thread.sleep(20);
        }
    }

    private boolean isSettled() {
        TreeSet<Integer> owned = new TreeSet<>();
        int count = 0;
        for (Member member : members.values()) {
            TreeSet<Integer> share = member.owned;
            owned.addAll(share);
            count += share.size() == PARTITIONS / members.size() ? share.size() : PARTITIONS + 1;
        }
        return owned.size() == PARTITIONS && count == PARTITIONS;
    }

    private synchronized boolean hasAll() {
        return seen.values().stream().mapToInt(List::size).sum() >= produced;
    }

    /** Whether each partition was read from its first record to its last, each once. */
    private synchronized String verdict() {
        int right = 0;
        for (Map.Entry<Integer, List<String>> entry : seen.entrySet()) {
            int next = entry.getKey();
            for (String value : entry.getValue()) {
                if (!value.equals("" + next)) {
                    return "partition " + entry.getKey() + ": " + value + " instead of " + next;
                }
                next += PARTITIONS;
                right++;
            }
        }
        return right + " of " + produced + " in order";
    }

    private TreeMap<Integer, Long> committed() {
        Properties settings = settings();
        settings.put("group.id", "oldest-" + assignor);
        TreeMap<Integer, Long> offsets = new TreeMap<>();
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                OffsetAndMetadata found =
                    consumer.committed(new TopicPartition(TOPIC, partition));
                offsets.put(partition, found.offset());
            }
        }
        return offsets;
    }

    private static KafkaConsumer<String, String> consumer(Properties settings) {
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }
}
