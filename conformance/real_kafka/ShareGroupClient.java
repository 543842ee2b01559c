import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Share groups of Java's clients on any broker; they print what they see, but no times or ids. */
public final class ShareGroupClient {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long PATIENCE_MS = 60_000;
    private static final long SILENCE_MS = 700;
    private static final long LOCK_MS = 3_000;
    private static String bootstrap;
    private static Admin admin;

    private ShareGroupClient() {
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (Admin opened = Admin.create(settings())) {
            admin = opened;
            switch (arguments[1]) {
                case "before" -> {
                    implicit();
                    explicit();
                    reject();
                    together();
                    slow();
                    renew();
                    committed();
                    leave();
                    latest();
                }
                case "after" -> goOn();
                default -> throw new IllegalArgumentException(arguments[1]);
            }
        }
    }

    /** What was delivered counts as done with the next poll, and not when the consumer closes. */
    private static void implicit() throws Exception {
        prepare("implicit", Map.of());
        produce("implicit", 0, 10);
        try (KafkaShareConsumer<String, String> consumer = consumer("implicit", false)) {
            say("first ten", read(consumer, 10));
            produce("implicit", 10, 5);
            say("five more", read(consumer, 5));
        }
        say("offset", offset("implicit"));
        try (KafkaShareConsumer<String, String> consumer = consumer("implicit", false)) {
            say("not acknowledged by closing", read(consumer, 5));
            say("acknowledged", results(consumer.commitSync()));
        }
        say("state", describe("implicit"));
    }

    /** Each record is accepted, released or rejected; what is released comes again. */
    private static void explicit() throws Exception {
        prepare("explicit", Map.of());
        produce("explicit", 0, 6);
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit", true)) {
            List<ConsumerRecord<String, String>> records = receive(consumer, 6);
            say("delivered", texts(records));
            say("lock", consumer.acquisitionLockTimeoutMs());
            for (ConsumerRecord<String, String> record : records) {
                consumer.acknowledge(record, switch ((int) record.offset() % 3) {
                    case 0 -> AcknowledgeType.ACCEPT;
                    case 1 -> AcknowledgeType.RELEASE;
                    default -> AcknowledgeType.REJECT;
                });
            }
            say("acknowledged", results(consumer.commitSync()));
            say("offset", offset("explicit"));
            List<ConsumerRecord<String, String>> again = receive(consumer, 2);
            say("again", texts(again));
            try {
                consumer.poll(POLL);
            } catch (IllegalStateException error) {
                say("not all acknowledged", error.getMessage());
            }
            for (ConsumerRecord<String, String> record : again) {
                consumer.acknowledge(record);
            }
            say("acknowledged", results(consumer.commitSync()));
            say("offset", offset("explicit"));
            try {
                consumer.acknowledge(again.get(0));
            } catch (IllegalStateException error) {
                say("acknowledged twice", error.getMessage());
            }
        }
    }

    /** A record that is given up again and again is archived at the limit. */
    private static void reject() throws Exception {
        prepare("limited", Map.of("share.delivery.count.limit", "3"));
        produce("limited", 0, 2);
        try (KafkaShareConsumer<String, String> consumer = consumer("limited", true)) {
            for (int round = 0; round < 3; round++) {
                // The last delivery is that of each record alone.
                List<ConsumerRecord<String, String>> records = new ArrayList<>();
                while (records.size() < 2) {
                    for (ConsumerRecord<String, String> record : receive(consumer, 1)) {
                        records.add(record);
                        consumer.acknowledge(record, AcknowledgeType.RELEASE);
                    }
                    consumer.commitSync();
                }
                say("round " + round, new TreeSet<>(texts(records)));
            }
            say("given up", silence(consumer));
            say("offset", offset("limited"));
        }
    }

    /** Two members work on one partition: each record goes to one of them. */
    private static void together() throws Exception {
        prepare("together", Map.of());
        try (KafkaShareConsumer<String, String> one = consumer("together", false);
                KafkaShareConsumer<String, String> two = consumer("together", false)) {
            one.poll(POLL);
            two.poll(POLL);
            Map<String, Integer> seen = new TreeMap<>();
            int[] counts = {0, 0};
            long end = System.currentTimeMillis() + PATIENCE_MS;
            int next = 0;
            while ((counts[0] < 20 || counts[1] < 20) && System.currentTimeMillis() < end) {
                produce("together", next, 10);
                next += 10;
                for (int each = 0; each < 2; each++) {
                    for (ConsumerRecord<String, String> record : (each == 0 ? one : two).poll(POLL)) {
                        counts[each]++;
                        seen.merge(record.value(), 1, Integer::sum);
                    }
                }
            }
            int total = next;
            await(() -> {
                for (KafkaShareConsumer<String, String> each : List.of(one, two)) {
                    each.poll(POLL).forEach(r -> seen.merge(r.value(), 1, Integer::sum));
                }
                return seen.size() >= total;
            });
            say("both work", counts[0] >= 20 && counts[1] >= 20);
            say("each once", seen.size() == total && seen.values().stream().allMatch(n -> n == 1));
            say("members", members("together"));
        }
    }

    /** Whose time is over has lost its records to others, and may not acknowledge them. */
    private static void slow() throws Exception {
        prepare("slow", Map.of("share.record.lock.duration.ms", Long.toString(LOCK_MS)));
        produce("slow", 0, 4);
        try (KafkaShareConsumer<String, String> one = consumer("slow", true);
                KafkaShareConsumer<String, String> two = consumer("slow", true)) {
            List<ConsumerRecord<String, String>> late = receive(one, 4);
            say("delivered", texts(late));
            say("lock", one.acquisitionLockTimeoutMs());
            List<ConsumerRecord<String, String>> stolen = receive(two, 4);
            // The client of the first may fetch on by itself, and lose them twice.
            say("to another", texts(stolen).stream()
                .map(text -> text.replaceFirst("x([2-9])$", " again"))
                .collect(Collectors.toList()));
            late.forEach(one::acknowledge);
            say("too late", results(one.commitSync()));
            stolen.forEach(two::acknowledge);
            say("in time", results(two.commitSync()));
            say("offset", offset("slow"));
        }
    }

    /** A lock that is renewed goes on. */
    private static void renew() throws Exception {
        prepare("renewed", Map.of("share.record.lock.duration.ms", Long.toString(LOCK_MS)));
        produce("renewed", 0, 2);
        try (KafkaShareConsumer<String, String> one = consumer("renewed", true);
                KafkaShareConsumer<String, String> two = consumer("renewed", true)) {
            List<ConsumerRecord<String, String>> records = receive(one, 2);
            say("delivered", texts(records));
            for (int round = 0; round < 4; round++) {
                Thread.sleep(LOCK_MS / 2);
                records.forEach(record -> one.acknowledge(record, AcknowledgeType.RENEW));
                say("renewed", results(one.commitSync()));
                say("for another", texts(drain(two)));
                records = receive(one, 2);
                say("with the next poll", texts(records));
            }
            records.forEach(one::acknowledge);
            say("accepted", results(one.commitSync()));
            say("offset", offset("renewed"));
        }
    }

    /** Records of an aborted transaction are left out where the group wants it so. */
    private static void committed() throws Exception {
        prepare("committed", Map.of("share.isolation.level", "read_committed"));
        prepare("uncommitted", Map.of());
        for (String topic : List.of("committed", "uncommitted")) {
            Properties given = settings();
            given.put("transactional.id", topic);
            try (KafkaProducer<String, String> producer = producer(given)) {
                producer.initTransactions();
                transaction(producer, topic, "kept", true);
                transaction(producer, topic, "dropped", false);
                transaction(producer, topic, "last", true);
            }
            try (KafkaShareConsumer<String, String> consumer = consumer(topic, false)) {
                say(topic, texts(drainTo(consumer, "last-1")));
            }
            say("offset", offset(topic));
        }
    }

    /** What a member had when it left is another's at once. */
    private static void leave() throws Exception {
        prepare("left", Map.of());
        produce("left", 0, 3);
        try (KafkaShareConsumer<String, String> two = consumer("left", true)) {
            KafkaShareConsumer<String, String> one = consumer("left", true);
            say("delivered", texts(receive(one, 3)));
            one.close();
            List<ConsumerRecord<String, String>> records = receive(two, 3);
            say("to another", texts(records));
            records.forEach(two::acknowledge);
        }
        say("offset", offset("left"));
    }

    /** A new group begins at the end, where nothing else is set. */
    private static void latest() throws Exception {
        admin.createTopics(List.of(new NewTopic("late", 1, (short) 1))).all().get();
        produce("late", 0, 3);
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        int[] next = {3};
        try (KafkaShareConsumer<String, String> consumer = consumer("late", false)) {
            await(() -> {
                produce("late", next[0]++, 1);
                consumer.poll(POLL).forEach(found::add);
                return !found.isEmpty();
            });
        }
        say("from the end", found.stream().allMatch(record -> record.offset() >= 3));
    }

    /** After a restart of the broker the groups are where they were. */
    private static void goOn() throws Exception {
        for (String group : List.of("implicit", "explicit", "limited", "left")) {
            say(group, offset(group));
            produce(group, 100, 2);
            try (KafkaShareConsumer<String, String> consumer = consumer(group, false)) {
                say(group, read(consumer, 2));
            }
            say(group, offset(group));
        }
    }

    // What the parts above are made of.

    private static Properties settings() {
        Properties given = new Properties();
        given.put("bootstrap.servers", bootstrap);
        return given;
    }

    private static KafkaShareConsumer<String, String> consumer(String group, boolean explicit) {
        Properties given = settings();
        given.put("group.id", group);
        given.put("client.id", group);
        given.put("share.acknowledgement.mode", explicit ? "explicit" : "implicit");
        StringDeserializer text = new StringDeserializer();
        KafkaShareConsumer<String, String> made = new KafkaShareConsumer<>(given, text, text);
        made.subscribe(List.of(group));
        return made;
    }

    private static KafkaProducer<String, String> producer(Properties given) {
        StringSerializer text = new StringSerializer();
        return new KafkaProducer<>(given, text, text);
    }

    /** A topic of one partition, and a group of its name that reads it from the beginning. */
    private static void prepare(String name, Map<String, String> settings) throws Exception {
        say("--", name);
        admin.createTopics(List.of(new NewTopic(name, 1, (short) 1))).all().get();
        List<AlterConfigOp> changes = new ArrayList<>();
        changes.add(set("share.auto.offset.reset", "earliest"));
        settings.forEach((key, value) -> changes.add(set(key, value)));
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, name);
        admin.incrementalAlterConfigs(Map.of(group, changes)).all().get();
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    /** One batch: a consumer that is fetching already would get the first of several alone. */
    private static void produce(String topic, int first, int count) {
        Properties given = settings();
        given.put("linger.ms", "60000");
        try (KafkaProducer<String, String> producer = producer(given)) {
            for (int number = first; number < first + count; number++) {
                producer.send(new ProducerRecord<>(topic, "v" + number));
            }
            producer.flush();
        }
    }

    private static void transaction(
            KafkaProducer<String, String> producer, String topic, String text, boolean commits)
            throws Exception {
        producer.beginTransaction();
        for (int number = 0; number < 2; number++) {
            producer.send(new ProducerRecord<>(topic, text + "-" + number)).get();
        }
        if (commits) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    /** Polls until so many records have come, which all are of one poll as a rule. */
    private static List<ConsumerRecord<String, String>> receive(
            KafkaShareConsumer<String, String> consumer, int count) throws Exception {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        await(() -> {
            consumer.poll(POLL).forEach(found::add);
            return found.size() >= count;
        });
        return found;
    }

    private static List<String> read(KafkaShareConsumer<String, String> consumer, int count)
            throws Exception {
        return texts(receive(consumer, count));
    }

    /** What comes until some value has come. */
    private static List<ConsumerRecord<String, String>> drainTo(
            KafkaShareConsumer<String, String> consumer, String last) throws Exception {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        await(() -> {
            consumer.poll(POLL).forEach(found::add);
            return !found.isEmpty() && found.get(found.size() - 1).value().equals(last);
        });
        return found;
    }

    private static List<ConsumerRecord<String, String>> drain(
            KafkaShareConsumer<String, String> consumer) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        consumer.poll(POLL).forEach(found::add);
        return found;
    }

    /** What comes in a while in which nothing should. */
    private static List<String> silence(KafkaShareConsumer<String, String> consumer) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long end = System.currentTimeMillis() + SILENCE_MS;
        while (System.currentTimeMillis() < end) {
            consumer.poll(POLL).forEach(found::add);
        }
        return texts(found);
    }

    private static List<String> texts(List<ConsumerRecord<String, String>> records) {
        return records.stream()
            .map(record -> record.value() + "@" + record.offset() + "x"
                + record.deliveryCount().map(Object::toString).orElse("?"))
            .collect(Collectors.toList());
    }

    private static String results(Map<TopicIdPartition, Optional<KafkaException>> outcomes) {
        return outcomes.entrySet().stream()
            .map(each -> each.getKey().topicPartition() + " " + each.getValue()
                .map(error -> error.getClass().getSimpleName() + ": " + error.getMessage())
                .orElse("done"))
            .sorted()
            .collect(Collectors.joining(", "));
    }

    private static String offset(String group) {
        try {
            Map<String, ListShareGroupOffsetsSpec> wanted =
                Map.of(group, new ListShareGroupOffsetsSpec());
            return String.valueOf(
                admin.listShareGroupOffsets(wanted).partitionsToOffsetInfo(group).get()
                    .getOrDefault(new TopicPartition(group, 0), null));
        } catch (Exception error) {
            return error.toString();
        }
    }

    private static String members(String group) throws Exception {
        return admin.describeShareGroups(List.of(group)).all().get().get(group).members().stream()
            .map(member -> member.clientId() + " " + member.assignment().topicPartitions())
            .sorted()
            .collect(Collectors.joining(", "));
    }

    private static String describe(String group) throws Exception {
        var told = admin.describeShareGroups(List.of(group)).all().get().get(group);
        return told.groupState() + " " + told.members().size();
    }

    private static void await(BooleanSupplier condition) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.getAsBoolean()) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("waited in vain");
            }
        }
    }

    private static void say(String what, Object value) {
        System.out.println(what + ": " + value);
    }
}
