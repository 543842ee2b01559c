import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupMemberAssignment.TaskIds;
import org.apache.kafka.clients.admin.StreamsGroupMemberDescription;
import org.apache.kafka.clients.admin.StreamsGroupSubtopologyDescription;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** Kafka Streams applications with the streams protocol on any broker; no times are printed. */
public class StreamsGroupClient {
    private static final String INPUT = "lines";
    private static final int PARTITIONS = 4;
    private static final int ROUND = 200;
    private static final String[] WORDS = {"one", "two", "three", "four", "five", "six", "seven"};
    private static final long PATIENCE_MS = 90_000;
    private static final long PAUSE_MS = 50;
    private static String bootstrap;
    private static Admin admin;

    private final String application;
    private final String output;
    private final String guarantee;
    private final Map<String, KafkaStreams> running = new TreeMap<>();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private int produced;

    private StreamsGroupClient(String application, String guarantee) {
        this.application = application;
        this.output = application + "-counts";
        this.guarantee = guarantee;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (Admin opened = Admin.create(settings())) {
            admin = opened;
            admin.createTopics(List.of(new NewTopic(INPUT, PARTITIONS, (short) 1))).all().get();
            configure();
            new StreamsGroupClient("counting", "at_least_once").grow();
            new StreamsGroupClient("exact", "exactly_once_v2").process();
            new StreamsGroupClient("orphan", "at_least_once").lack();
            delete();
        } catch (Exception error) {
            error.printStackTrace();
            // Threads of an application that was not closed would keep the process.
            System.exit(1);
        }
    }

    /** One instance, then two, then copies of tasks; then they go one by one. */
    private void grow() throws Exception {
        createOutput();
        start("a");
        await(() -> shares("active").equals("[8]"));
        produce();
        await(this::isCounted);
        System.out.println("counted " + counts());
        describe();
        topics();
        start("b");
        await(() -> shares("active").equals("[4, 4]"));
        produce();
        await(this::isCounted);
        System.out.println("counted " + counts());
        alter("streams.num.standby.replicas=1");
        await(() -> shares("standby").equals("[2, 2]"));
        describe();
        running.remove("b").close();
        await(() -> shares("active").equals("[8]"));
        produce();
        await(this::isCounted);
        System.out.println("counted " + counts());
        close();
        describe();
        offsets();
    }

    /** The same with transactions. */
    private void process() throws Exception {
        createOutput();
        start("a");
        start("b");
        await(() -> shares("active").equals("[4, 4]"));
        produced = 3 * ROUND;
        await(this::isCounted);
        System.out.println("counted exactly " + counts());
        close();
        offsets();
    }

    /** An application whose topic does not exist. */
    private void lack() throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("nowhere").to("nothing");
        KafkaStreams streams = new KafkaStreams(builder.build(), streamsSettings("a"));
        streams.setUncaughtExceptionHandler(error -> {
            failure.compareAndSet(null, error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        await(() -> failure.get() != null);
        Throwable found = failure.get();
        System.out.println("failed " + found.getClass().getSimpleName());
        streams.close(Duration.ofSeconds(30));
        describe();
    }

    /** Settings of groups, with their bounds. */
    private static void configure() throws Exception {
        for (String setting : List.of(
            "streams.session.timeout.ms=50000",
            "streams.session.timeout.ms=1",
            "streams.session.timeout.ms=99999999",
            "streams.heartbeat.interval.ms=600",
            "streams.heartbeat.interval.ms=1",
            "streams.heartbeat.interval.ms=999999",
            "streams.num.standby.replicas=99",
            "streams.num.standby.replicas=-1",
            "streams.initial.rebalance.delay.ms=100",
            "streams.initial.rebalance.delay.ms=-1",
            "streams.nonsense=1")) {
            alterOf("counting", setting);
        }
    }

    private static void delete() throws Exception {
        TreeSet<String> listed = new TreeSet<>();
        for (GroupListing each : admin.listGroups().all().get()) {
            listed.add(each.groupId() + " " + each.type().orElseThrow() + " "
                + each.groupState().orElseThrow() + " " + each.protocol());
        }
        System.out.println(listed);
        for (String group : List.of("counting", "exact", "orphan", "nobody")) {
            String outcome = "deleted";
            try {
                admin.deleteStreamsGroups(List.of(group)).all().get();
            } catch (ExecutionException error) {
                outcome = error.getCause().getClass().getSimpleName();
            }
            System.out.println(group + " " + outcome);
        }
    }

    private void alter(String setting) throws Exception {
        alterOf(application, setting);
    }

    private static void alterOf(String group, String setting) throws Exception {
        String[] parts = setting.split("=");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
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

    private void createOutput() throws Exception {
        admin.createTopics(List.of(new NewTopic(output, 1, (short) 1))).all().get();
    }

    /** Another instance: words are counted, and told to the output. */
    private void start(String name) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(INPUT, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("totals"))
            .toStream()
            .to(output, Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), streamsSettings(name));
        streams.setUncaughtExceptionHandler(error -> {
            failure.compareAndSet(null, error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        running.put(name, streams);
    }

    private void close() {
        for (KafkaStreams streams : running.values()) {
            streams.close();
        }
        running.clear();
    }

    private Properties streamsSettings(String name) throws Exception {
        Path directory = Files.createTempDirectory("streams");
        Properties settings = settings();
        settings.put("application.id", application);
        settings.put("client.id", name);
        settings.put("group.protocol", "streams");
        settings.put("processing.guarantee", guarantee);
        settings.put("state.dir", directory.toString());
        settings.put("commit.interval.ms", "200");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("auto.offset.reset", "earliest");
        settings.put("repartition.purge.interval.ms", "1000");
        settings.put("dsl.store.suppliers.class",
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers");
        settings.put("default.key.serde", Serdes.String().getClass().getName());
        settings.put("default.value.serde", Serdes.String().getClass().getName());
        return settings;
    }

    private void produce() throws Exception {
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings(), new StringSerializer(), new StringSerializer())) {
            for (int count = 0; count < ROUND; count++) {
                String line = WORDS[count % WORDS.length] + " " + WORDS[count % 3];
                producer.send(new ProducerRecord<>(INPUT, count % PARTITIONS, "k", line));
            }
        }
        produced += ROUND;
    }

    /** The last count of each word. */
    private TreeMap<String, Long> counts() throws Exception {
        Properties settings = settings();
        settings.put("isolation.level", "read_committed");
        TreeMap<String, Long> found = new TreeMap<>();
        try (KafkaConsumer<String, Long> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new LongDeserializer())) {
            TopicPartition place = new TopicPartition(output, 0);
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long end = consumer.endOffsets(List.of(place)).get(place);
            while (consumer.position(place) < end) {
                for (ConsumerRecord<String, Long> each : consumer.poll(Duration.ofMillis(200))) {
                    found.put(each.key(), each.value());
                }
            }
        }
        return found;
    }

    private boolean isCounted() throws Exception {
        return counts().values().stream().mapToLong(Long::longValue).sum() >= 2L * produced;
    }

    private StreamsGroupDescription described() throws Exception {
        return admin.describeStreamsGroups(List.of(application)).describedGroups()
            .get(application).get();
    }

    /** How many tasks each member has in a role, ascending; members without any are left out. */
    private String shares(String role) throws Exception {
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        List<Integer> found = new ArrayList<>();
        try {
            for (StreamsGroupMemberDescription member : described().members()) {
                List<TaskIds> tasks = role.equals("active")
                    ? member.assignment().activeTasks() : member.assignment().standbyTasks();
                int count = tasks.stream().mapToInt(each -> each.partitions().size()).sum();
                if (count > 0) {
                    found.add(count);
                }
            }
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        }
        found.sort(null);
        return found.toString();
    }

    /** The group as an administrator sees it. */
    private void describe() throws Exception {
        StreamsGroupDescription found = described();
        TreeSet<String> members = new TreeSet<>();
        for (StreamsGroupMemberDescription member : found.members()) {
            members.add(member.clientId() + " " + member.clientHost() + " topology "
                + member.topologyEpoch() + " instance " + member.instanceId() + " rack "
                + member.rackId() + " endpoint " + member.userEndpoint() + " tags "
                + member.clientTags() + " classic " + member.isClassic() + " same "
                + member.targetAssignment().activeTasks().equals(
                    member.assignment().activeTasks()));
        }
        System.out.println(application + " " + found.groupState() + " topology "
            + found.topologyEpoch() + " members " + members);
        Collection<StreamsGroupSubtopologyDescription> parts = found.subtopologies();
        for (StreamsGroupSubtopologyDescription part : parts) {
            System.out.println("  " + part.subtopologyId() + " reads " + part.sourceTopics()
                + " writes " + part.repartitionSinkTopics() + " keeps "
                + told(part.stateChangelogTopics()) + " shuffles "
                + told(part.repartitionSourceTopics()));
        }
    }

    private static String told(Map<String, StreamsGroupSubtopologyDescription.TopicInfo> topics) {
        TreeMap<String, String> found = new TreeMap<>();
        topics.forEach((name, topic) -> found.put(name, topic.partitions() + " x "
            + topic.replicationFactor() + " " + new TreeMap<>(topic.topicConfigs())));
        return found.toString();
    }

    /** The topics that the broker created for the group. */
    private void topics() throws Exception {
        TreeSet<String> names = new TreeSet<>();
        for (String name : admin.listTopics().names().get()) {
            if (name.startsWith(application + "-") && !name.equals(output)) {
                names.add(name);
            }
        }
        Map<String, TopicDescription> found = admin.describeTopics(names).allTopicNames().get();
        for (String name : names) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
            TreeMap<String, String> own = new TreeMap<>();
            admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().forEach(
                entry -> {
                    if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                        own.put(entry.name(), entry.value());
                    }
                });
            System.out.println("created " + name + " of "
                + found.get(name).partitions().size() + " " + own);
        }
    }

    /** What the group has committed of its input: all that was produced. */
    private void offsets() throws Exception {
        TreeMap<String, Long> told = new TreeMap<>();
        admin.listStreamsGroupOffsets(Map.of(application,
                new org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec()))
            .partitionsToOffsetAndMetadata(application).get()
            .forEach((place, offset) -> {
                if (place.topic().equals(INPUT)) {
                    told.put(place.toString(), offset.offset());
                }
            });
        System.out.println("committed " + told);
    }

    private void await(Callable<Boolean> condition) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.call()) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("waited too long: active " + shares("active")
                    + " standby " + shares("standby"));
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }
}
