import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of groups, each in a thread of its own, that tell what happens to them. Lines of standard
 * input: "start NAME TOPIC,TOPIC SETTING=VALUE...", "stop NAME", "nap NAME MS" for one long time between
 * polls, "subscribe NAME TOPIC,TOPIC", "unsubscribe NAME", "rejoin NAME REASON", "evict GROUP REASON",
 * "group ID", "offsets ID". Lines of standard output: microseconds, who, what, and about what.
 */
public final class UpgradeMembers {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final long COMMIT_INTERVAL_MS = 400;
    private static String bootstrap;

    private UpgradeMembers() {
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        Map<String, Member> members = new TreeMap<>();
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Admin admin = Admin.create(settings())) {
            String line = lines.readLine();
            while (line != null) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "start" -> {
                        members.put(words[1], new Member(words));
                        members.get(words[1]).start();
                    }
                    case "stop" -> members.remove(words[1]).isStopped = true;
                    case "nap", "subscribe", "unsubscribe", "rejoin" ->
                        members.get(words[1]).errands.add(words);
                    case "evict" -> evict(admin, words[1], words[2]);
                    case "group" -> describe(admin, words[1]);
                    default -> offsets(admin, words[1]);
                }
                line = lines.readLine();
            }
            members.values().forEach(each -> each.isStopped = true);
            for (Member each : members.values()) {
                each.join();
            }
        }
    }

    private static synchronized void tell(String who, String what, String about) {
        Instant now = Instant.now();
        long micros = ChronoUnit.MICROS.between(Instant.EPOCH, now);
        System.out.println((micros + " " + who + " " + what + " " + about).strip());
    }

    /** The group as it is listed, and as it is described. */
    private static void describe(Admin admin, String group) throws Exception {
        String listed = "none none none";
        for (GroupListing each : admin.listGroups().all().get()) {
            if (each.groupId().equals(group)) {
                listed = each.type().orElseThrow() + " " + each.groupState().orElseThrow() + " "
                    + each.protocol();
            }
        }
        String described;
        try {
            ConsumerGroupDescription found =
                admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
            TreeSet<String> members = new TreeSet<>();
            for (MemberDescription each : found.members()) {
                members.add(each.clientId() + ":" + each.memberEpoch().map(String::valueOf).orElse("-")
                    + ":" + each.upgraded().map(is -> is ? "new" : "old").orElse("-") + ":"
                    + each.assignment().topicPartitions().size());
            }
            described = found.type() + " " + found.groupState() + " assignor="
                + found.partitionAssignor() + " epoch="
                + found.groupEpoch().map(String::valueOf).orElse("-") + " target="
                + found.targetAssignmentEpoch().map(String::valueOf).orElse("-") + " "
                + String.join(" ", members);
        } catch (ExecutionException error) {
            described = error.getCause().getClass().getSimpleName();
        }
        tell("-", "group", listed + " " + described);
    }

    private static void offsets(Admin admin, String group) throws Exception {
        TreeSet<String> told = new TreeSet<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach(
            (place, offset) -> told.add(place + "=" + (offset == null ? "-" : offset.offset())));
        tell("-", "offsets", String.join(" ", told));
    }

    /** Removes all members of a group, as an administrator. */
    private static void evict(Admin admin, String group, String reason) throws Exception {
        RemoveMembersFromConsumerGroupOptions everyone = new RemoveMembersFromConsumerGroupOptions();
        everyone.reason(reason);
        admin.removeMembersFromConsumerGroup(group, everyone).all().get();
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    /** Hears of commits that the consumer makes by itself. */
    public static final class Listener implements ConsumerInterceptor<String, String> {
        private String who;

        @Override
        public void configure(Map<String, ?> settings) {
            who = (String) settings.get("client.id");
        }

        @Override
        public ConsumerRecords<String, String> onConsume(ConsumerRecords<String, String> records) {
            return records;
        }

        @Override
        public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            offsets.forEach((place, offset) -> tell(who, "committed", place + " " + offset.offset()));
        }

        @Override
        public void close() {
            // Nothing is held.
        }
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final String who;
        private final List<String> topics;
        private final boolean commits;
        private final KafkaConsumer<String, String> consumer;
        private final Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();
        private final Queue<String[]> errands = new ConcurrentLinkedQueue<>();
        private volatile boolean isStopped;

        private Member(String[] words) {
            who = words[1];
            topics = List.of(words[2].split(","));
            Properties settings = settings();
            settings.put("client.id", who);
            settings.put("auto.offset.reset", "earliest");
            settings.put("interceptor.classes", List.of(Listener.class));
            for (int place = 3; place < words.length; place++) {
                String[] setting = words[place].split("=", 2);
                settings.put(setting[0], setting[1]);
            }
            commits = settings.getProperty("enable.auto.commit").equals("false");
            StringDeserializer text = new StringDeserializer();
            consumer = new KafkaConsumer<>(settings, text, text);
        }

        @Override
        public void run() {
            try {
                consumer.subscribe(topics, this);
                long next = System.currentTimeMillis() + COMMIT_INTERVAL_MS;
                while (!isStopped) {
                    run(errands.poll());
                    if (consumer.subscription().isEmpty()) {
                        sleep(POLL.toMillis());
                        continue;
                    }
                    for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                        TopicPartition place = new TopicPartition(record.topic(), record.partition());
                        tell(who, "read", place + " " + record.offset() + " " + record.value());
                        done.put(place, new OffsetAndMetadata(record.offset() + 1));
                    }
                    if (commits && System.currentTimeMillis() >= next) {
                        commit(consumer.assignment());
                        next = System.currentTimeMillis() + COMMIT_INTERVAL_MS;
                    }
                }
                consumer.close();
                tell(who, "closed", "");
            } catch (KafkaException | InterruptedException error) {
                tell(who, "failed", error.toString());
            }
        }

        /** Does what a line asks of this member, between two polls. */
        private void run(String[] errand) throws InterruptedException {
            switch (errand == null ? "" : errand[0]) {
                case "nap" -> sleep(Long.parseLong(errand[2]));
                case "subscribe" -> consumer.subscribe(List.of(errand[2].split(",")), this);
                case "unsubscribe" -> consumer.unsubscribe();
                case "rejoin" -> consumer.enforceRebalance(errand[2]);
                default -> { }
            }
        }

        /** Commits what was processed of some partitions; the listener tells what was taken. */
        private void commit(Collection<TopicPartition> places) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(done);
            offsets.keySet().retainAll(places);
            if (offsets.isEmpty()) {
                return;
            }
            offsets.forEach((place, offset) -> tell(who, "committing", place + " " + offset.offset()));
            try {
                consumer.commitSync(offsets);
            } catch (KafkaException error) {
                tell(who, "refused", error.getClass().getSimpleName());
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> places) {
            places.forEach(place -> tell(who, "assigned", place.toString()));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> places) {
            if (commits) {
                commit(places);
            }
            done.keySet().removeAll(places);
            places.forEach(place -> tell(who, "revoked", place.toString()));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> places) {
            done.keySet().removeAll(places);
            places.forEach(place -> tell(who, "lost", place.toString()));
        }
    }
}
