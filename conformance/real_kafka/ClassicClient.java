import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
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
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Classic consumer groups of Java's clients on any broker; what is printed tells no times. */
public class ClassicClient {
    private static final String TOPIC = "orders";
    private static final int PARTITIONS = 6;
    private static final int BATCH = 600;
    private static final long FIRST_MS = 1_700_000_000_000L;
    private static final Duration POLL = Duration.ofMillis(50);
    private static final long PATIENCE_MS = 30_000;
    private static String bootstrap;
    private static int produced;

    private final String assignor;
    private final Map<String, KafkaConsumer<String, String>> members = new TreeMap<>();
    private final Map<Integer, List<String>> seen = new TreeMap<>();

    private ClassicClient(String assignor) {
        this.assignor = assignor;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        produce();
        new ClassicClient("Range").grow();
        new ClassicClient("CooperativeSticky").grow();
        new ClassicClient("Range").stay();
        seek();
    }

    /** As many records as a batch, to all partitions in turn, with the default idempotence. */
    private static void produce() throws Exception {
        Properties settings = settings();
        settings.put("linger.ms", "5");
        settings.put("compression.type", produced % (2 * BATCH) == 0 ? "none" : "gzip");
        RecordMetadata last = null;
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int end = produced + BATCH; produced < end; produced++) {
                ProducerRecord<String, String> record = new ProducerRecord<>(
                    TOPIC, produced % PARTITIONS, FIRST_MS + produced, "k", "" + produced);
                var sent = producer.send(record);
                last = produced + 1 == end ? sent.get() : last;
            }
        }
        System.out.println("produced up to " + last.offset() + " of " + last.partition());
    }

    /** One, two and three members, then two; commits before partitions go. */
    private void grow() throws Exception {
        for (String name : List.of("c0", "c1", "c2")) {
            join(name, null);
            await(this::isSettled);
            System.out.println(assignor + " " + assignment());
            produce();
            await(this::hasAll);
        }
        members.remove("c0").close();
        await(this::isSettled);
        System.out.println(assignor + " without c0: " + shares());
        produce();
        await(this::hasAll);
        System.out.println(assignor + " read " + verdict());
        leave();
        System.out.println(assignor + " committed " + committed());
    }

    /** A static member that restarts keeps its partitions; one that is replaced is fenced. */
    private void stay() throws Exception {
        join("s0", "zero");
        join("s1", "one");
        await(this::isSettled);
        String before = assignment();
        int generation = members.get("s0").groupMetadata().generationId();
        await(this::hasAll);
        members.remove("s1").close();
        join("s1", "one");
        await(this::isSettled);
        System.out.println("restarted " + before.equals(assignment()) + " generations "
            + (members.get("s0").groupMetadata().generationId() - generation));
        produce();
        await(this::hasAll);
        System.out.println("static read " + verdict());
        KafkaConsumer<String, String> old = members.remove("s1");
        join("s1", "one");
        await(() -> members.get("s1").assignment().size() == PARTITIONS / 2);
        String fenced = "";
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (fenced.isEmpty() && System.currentTimeMillis() < end) {
            try {
                old.poll(POLL);
            } catch (KafkaException error) {
                fenced = error.getClass().getSimpleName();
            }
        }
        old.close();
        System.out.println("fenced " + fenced);
        await(this::isSettled);
        leave();
    }

    /** Positions by time and from both ends, without a group. */
    private static void seek() {
        TopicPartition place = new TopicPartition(TOPIC, 1);
        try (KafkaConsumer<String, String> consumer = consumer(settings())) {
            consumer.assign(List.of(place));
            OffsetAndTimestamp found =
                consumer.offsetsForTimes(Map.of(place, FIRST_MS + BATCH)).get(place);
            System.out.println("at " + found.offset() + " " + (found.timestamp() - FIRST_MS));
            System.out.println("after " + consumer.offsetsForTimes(
                Map.of(place, FIRST_MS + produced)).get(place));
            System.out.println("ends " + consumer.beginningOffsets(List.of(place)) + " "
                + consumer.endOffsets(List.of(place)));
            consumer.seek(place, found.offset());
            List<String> values = new ArrayList<>();
            while (values.isEmpty()) {
                consumer.poll(POLL).forEach(record -> values.add(record.value()));
            }
            System.out.println("there " + values.get(0));
            System.out.println("topics " + new TreeSet<>(consumer.listTopics().keySet()));
        }
    }

    private void join(String name, String instance) {
        Properties settings = settings();
        settings.put("client.id", name);
        settings.put("group.id", "classic-" + assignor + (instance == null ? "" : "-static"));
        settings.put("partition.assignment.strategy",
            "org.apache.kafka.clients.consumer." + assignor + "Assignor");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("heartbeat.interval.ms", "200");
        settings.put("session.timeout.ms", "10000");
        if (instance != null) {
            settings.put("group.instance.id", instance);
        }
        KafkaConsumer<String, String> consumer = consumer(settings);
        members.put(name, consumer);
        consumer.subscribe(List.of(TOPIC), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                consumer.commitSync();
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                // Whose they are now has committed.
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                // Positions come from what was committed.
            }
        });
    }

    private void leave() {
        for (KafkaConsumer<String, String> consumer : members.values()) {
            consumer.commitSync();
            consumer.close();
        }
        members.clear();
    }

    /** Polls all members in turn until something holds. */
    private void await(BooleanSupplier condition) {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.getAsBoolean()) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("waited too long: " + assignment() + verdict());
            }
            for (KafkaConsumer<String, String> consumer : members.values()) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    seen.computeIfAbsent(record.partition(), partition -> new ArrayList<>())
                        .add(record.value());
                }
            }
        }
    }

    /** Every partition has one owner, every member its fair share, all of one generation. */
    private boolean isSettled() {
        TreeSet<Integer> owned = new TreeSet<>();
        TreeSet<Integer> generations = new TreeSet<>();
        int count = 0;
        for (KafkaConsumer<String, String> consumer : members.values()) {
            int share = consumer.assignment().size();
            if (share != PARTITIONS / members.size()) {
                return false;
            }
            count += share;
            consumer.assignment().forEach(place -> owned.add(place.partition()));
            generations.add(consumer.groupMetadata().generationId());
        }
        return owned.size() == PARTITIONS && count == PARTITIONS && generations.size() == 1;
    }

    private boolean hasAll() {
        return seen.values().stream().mapToInt(List::size).sum() >= produced;
    }

    /** Whether each partition was read from its first record to its last, each once. */
    private String verdict() {
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

    private String assignment() {
        Map<String, TreeSet<Integer>> owners = new TreeMap<>();
        members.forEach((name, consumer) -> {
            owners.put(name, new TreeSet<>());
            consumer.assignment().forEach(place -> owners.get(name).add(place.partition()));
        });
        return owners.toString();
    }

    private List<Integer> shares() {
        return members.values().stream().map(consumer -> consumer.assignment().size()).toList();
    }

    private String committed() {
        Properties settings = settings();
        settings.put("group.id", "classic-" + assignor);
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            TreeSet<Integer> partitions = new TreeSet<>(seen.keySet());
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (int partition : partitions) {
                TopicPartition place = new TopicPartition(TOPIC, partition);
                offsets.putAll(consumer.committed(java.util.Set.of(place)));
            }
            return new TreeSet<>(offsets.values().stream().map(OffsetAndMetadata::offset).toList())
                .toString() + " " + offsets.size();
        }
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
