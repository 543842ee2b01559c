import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Groups of the consumer protocol of Java's clients on any broker; no times are printed. */
public class ConsumerGroupClient {
    private static final String TOPIC = "orders";
    private static final int BATCH = 480;
    private static final Duration POLL = Duration.ofMillis(20);
    private static final long PATIENCE_MS = 60_000;
    private static String bootstrap;
    private static Admin admin;

    private final String group;
    private final boolean byPattern;
    private final Map<String, KafkaConsumer<String, String>> members = new TreeMap<>();
    private final Map<TopicPartition, List<Long>> seen = new TreeMap<>(
        (one, other) -> one.toString().compareTo(other.toString()));
    private int produced;

    private ConsumerGroupClient(String group, boolean byPattern) {
        this.group = group;
        this.byPattern = byPattern;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (Admin opened = Admin.create(settings())) {
            admin = opened;
            admin.createTopics(List.of(new NewTopic(TOPIC, 6, (short) 1))).all().get();
            new ConsumerGroupClient("grown", false).grow();
            new ConsumerGroupClient("static", false).stay();
            new ConsumerGroupClient("pattern", true).match();
            configure();
            delete();
        }
    }

    /** One, two and three members, then two, then more partitions; commits before they go. */
    private void grow() throws Exception {
        for (String name : List.of("c0", "c1", "c2")) {
            join(name, null);
            await(() -> isSettled(6));
            produce(6);
            await(this::hasAll);
            System.out.println(members.keySet() + " own " + shares() + " at " + epochs());
        }
        describe();
        members.remove("c0").close();
        await(() -> isSettled(6));
        System.out.println("without c0 " + shares() + " at " + epochs());
        admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(8))).all().get();
        await(() -> isSettled(8));
        produce(8);
        await(this::hasAll);
        System.out.println("of eight " + shares() + " at " + epochs());
        System.out.println("read " + verdict());
        leave();
        describe();
        System.out.println("committed " + committed());
    }

    /** A static member that restarts keeps its partitions; while it lives nobody takes its place. */
    private void stay() throws Exception {
        join("s0", "zero");
        join("s1", "one");
        await(() -> isSettled(8));
        String before = assignment();
        String epochs = epochs();
        members.remove("s1").close();
        join("s1", "one");
        await(() -> isSettled(8));
        System.out.println("restarted " + before.equals(assignment()) + epochs.equals(epochs()));
        KafkaConsumer<String, String> old = members.remove("s1");
        join("s1", "one");
        String refused = "";
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (refused.isEmpty() && System.currentTimeMillis() < end) {
            try {
                members.get("s1").poll(POLL);
                old.poll(POLL);
            } catch (KafkaException error) {
                refused = error.getClass().getSimpleName();
            }
        }
        System.out.println("second of an instance " + refused);
        members.remove("s1").close();
        members.put("s1", old);
        await(() -> isSettled(8));
        System.out.println("the first goes on " + before.equals(assignment()));
        leave();
    }

    /** An expression finds topics that come later, too. */
    private void match() throws Exception {
        join("p0", null);
        await(() -> isSettled(8));
        join("p1", null);
        await(() -> isSettled(8));
        System.out.println("matched " + shares() + " at " + epochs());
        admin.createTopics(List.of(new NewTopic("orders2", 2, (short) 1))).all().get();
        admin.createTopics(List.of(new NewTopic("other", 2, (short) 1))).all().get();
        await(() -> isSettled(10));
        System.out.println("matched " + shares() + " of " + topics());
        leave();
        KafkaConsumer<String, String> broken = consumer("broken", null, "broken");
        broken.subscribe(new SubscriptionPattern("ord("));
        String told = "";
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (told.isEmpty() && System.currentTimeMillis() < end) {
            try {
                broken.poll(POLL);
            } catch (KafkaException error) {
                told = error.getClass().getSimpleName() + " " + error.getMessage();
            }
        }
        System.out.println("broken " + told);
        broken.close();
    }

    /** Settings of a group, with their bounds. */
    private static void configure() throws Exception {
        for (String setting : List.of(
            "consumer.session.timeout.ms=50000",
            "consumer.heartbeat.interval.ms=700",
            "consumer.heartbeat.interval.ms=1",
            "consumer.heartbeat.interval.ms=999999",
            "consumer.session.timeout.ms=1",
            "consumer.session.timeout.ms=99999999",
            "consumer.assignment.interval.ms=10",
            "consumer.assignment.interval.ms=-1",
            "consumer.nonsense=1")) {
            String[] parts = setting.split("=");
            ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, "grown");
            AlterConfigOp change = new AlterConfigOp(
                new ConfigEntry(parts[0], parts[1]), AlterConfigOp.OpType.SET);
            String outcome = "taken";
            try {
                admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
            } catch (ExecutionException error) {
                outcome = error.getCause().toString();
            }
            System.out.println(setting + " " + outcome);
        }
    }

    private static void delete() throws Exception {
        TreeSet<String> listed = new TreeSet<>();
        for (GroupListing each : admin.listGroups().all().get()) {
            listed.add(each.groupId() + " " + each.type().orElseThrow() + " "
                + each.groupState().orElseThrow() + " " + each.protocol());
        }
        System.out.println(listed);
        for (String group : List.of("grown", "static", "pattern", "nobody")) {
            String outcome = "deleted";
            try {
                admin.deleteConsumerGroups(List.of(group)).all().get();
            } catch (ExecutionException error) {
                outcome = error.getCause().getClass().getSimpleName();
            }
            System.out.println(group + " " + outcome);
        }
    }

    private void produce(int partitions) throws Exception {
        Properties settings = settings();
        settings.put("linger.ms", "5");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int count = 0; count < BATCH; count++) {
                producer.send(new ProducerRecord<>(TOPIC, count % partitions, "k", "v"));
            }
        }
        produced += BATCH;
    }

    /** The group as an administrator sees it. */
    private void describe() throws Exception {
        ConsumerGroupDescription found =
            admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
        TreeSet<String> told = new TreeSet<>();
        for (MemberDescription member : found.members()) {
            told.add(member.clientId() + " " + member.host() + " epoch "
                + member.memberEpoch().orElseThrow() + " upgraded "
                + member.upgraded().orElse(null) + " same "
                + member.targetAssignment().orElseThrow().equals(member.assignment()));
        }
        System.out.println(found.type() + " " + found.groupState() + " "
            + found.partitionAssignor() + " epoch " + found.groupEpoch().orElse(-1) + " target "
            + found.targetAssignmentEpoch().orElse(-1) + " " + told);
    }

    private KafkaConsumer<String, String> consumer(String name, String instance, String of) {
        Properties settings = settings();
        settings.put("client.id", name);
        settings.put("group.id", of);
        settings.put("group.protocol", "consumer");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("metadata.max.age.ms", "1000");
        if (instance != null) {
            settings.put("group.instance.id", instance);
        }
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private void join(String name, String instance) {
        KafkaConsumer<String, String> consumer = consumer(name, instance, group);
        members.put(name, consumer);
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
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
        };
        if (byPattern) {
            consumer.subscribe(new SubscriptionPattern("ord.*"), listener);
        } else {
            consumer.subscribe(List.of(TOPIC), listener);
        }
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
                throw new IllegalStateException(
                    "waited too long: " + assignment() + epochs() + verdict());
            }
            for (KafkaConsumer<String, String> consumer : members.values()) {
                if (consumer.subscription().isEmpty() && !byPattern) {
                    continue;
                }
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    TopicPartition place = new TopicPartition(record.topic(), record.partition());
                    seen.computeIfAbsent(place, any -> new ArrayList<>()).add(record.offset());
                }
            }
        }
    }

    /** Every partition has one owner, every member its fair share, all of one epoch. */
    private boolean isSettled(int partitions) {
        Set<TopicPartition> owned = new java.util.HashSet<>();
        TreeSet<Integer> epochs = new TreeSet<>();
        int count = 0;
        for (KafkaConsumer<String, String> consumer : members.values()) {
            if (consumer.assignment().size() != partitions / members.size()) {
                return false;
            }
            count += consumer.assignment().size();
            owned.addAll(consumer.assignment());
            epochs.add(consumer.groupMetadata().generationId());
        }
        return owned.size() == partitions && count == partitions && epochs.size() == 1;
    }

    private boolean hasAll() {
        return seen.values().stream().mapToInt(List::size).sum() >= produced;
    }

    /** Whether each partition was read from its first record to its last, each once. */
    private String verdict() {
        int right = 0;
        for (Map.Entry<TopicPartition, List<Long>> entry : seen.entrySet()) {
            long next = 0;
            for (long offset : entry.getValue()) {
                if (offset != next) {
                    return entry.getKey() + ": " + offset + " instead of " + next;
                }
                next++;
                right++;
            }
        }
        return right + " of " + produced + " in order";
    }

    private String assignment() {
        Map<String, TreeSet<String>> owners = new TreeMap<>();
        members.forEach((name, consumer) -> {
            owners.put(name, new TreeSet<>());
            consumer.assignment().forEach(place -> owners.get(name).add(place.toString()));
        });
        return owners.toString();
    }

    private List<Integer> shares() {
        return members.values().stream().map(consumer -> consumer.assignment().size()).toList();
    }

    private String epochs() {
        return new TreeSet<>(members.values().stream()
            .map(consumer -> consumer.groupMetadata().generationId()).toList()).toString();
    }

    private TreeSet<String> topics() {
        TreeSet<String> found = new TreeSet<>();
        members.values().forEach(
            consumer -> consumer.assignment().forEach(place -> found.add(place.topic())));
        return found;
    }

    private String committed() throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets =
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        Map<String, Long> told = new TreeMap<>();
        offsets.forEach((place, offset) -> told.put(place.toString(), offset.offset()));
        return told.toString();
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }
}
