import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A share consumer that follows commands on standard input, for recordings.
 *
 * <p>Arguments: BOOTSTRAP GROUP TOPIC KEY=VALUE... Keys that begin with "app." are its own: app.types
 * has a letter for each offset in turn (A accept, L release, J reject, N renew once and then accept),
 * app.commit is none, sync or async. Commands, one per line: "slow MS" sleeps that long between two
 * polls, "subscribe TOPIC..." replaces the subscription, "close" closes and ends.
 */
public final class ShareMember {
    private static final Duration POLL = Duration.ofMillis(1_000);
    private static final Map<Character, AcknowledgeType> TYPES = Map.of(
        'A', AcknowledgeType.ACCEPT, 'L', AcknowledgeType.RELEASE,
        'J', AcknowledgeType.REJECT, 'N', AcknowledgeType.RENEW);
    private final ConcurrentLinkedQueue<String> commands = new ConcurrentLinkedQueue<>();
    private final Set<String> renewed = new HashSet<>();
    private final String types;
    private final String commit;
    private final KafkaShareConsumer<byte[], byte[]> consumer;

    private ShareMember(Properties settings, Properties own) {
        types = own.getProperty("app.types", "");
        commit = own.getProperty("app.commit", "none");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        consumer = new KafkaShareConsumer<>(settings, bytes, bytes);
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        Properties own = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        for (int index = 3; index < arguments.length; index++) {
            String[] pair = arguments[index].split("=", 2);
            (pair[0].startsWith("app.") ? own : settings).put(pair[0], pair[1]);
        }
        beginEarliest(arguments[0], arguments[1]);
        ShareMember member = new ShareMember(settings, own);
        Thread listener = new Thread(member::listen);
        listener.setDaemon(true);
        listener.start();
        say("subscribe");
        member.consumer.subscribe(List.of(arguments[2]));
        member.run();
    }

    private static void beginEarliest(String bootstrap, String group) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "admin");
        ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
        try (Admin admin = Admin.create(settings)) {
            admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.GROUP, group),
                List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET)))).all().get();
        }
    }

    private void listen() {
        new BufferedReader(new InputStreamReader(System.in)).lines().forEach(commands::add);
    }

    private void run() throws Exception {
        while (true) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
            if (!records.isEmpty()) {
                say("records " + records.count());
                if (!types.isEmpty()) {
                    records.forEach(this::acknowledge);
                }
                if (commit.equals("sync")) {
                    consumer.commitSync();
                    say("committed");
                } else if (commit.equals("async")) {
                    consumer.commitAsync();
                }
            }
            String command = commands.poll();
            if (command == null) {
                continue;
            }
            String[] words = command.split(" ");
            if (words[0].equals("slow")) {
                say("busy");
                Thread.sleep(Long.parseLong(words[1]));
                say("polling");
            } else if (words[0].equals("subscribe")) {
                say(command.replaceFirst("subscribe", "subscribed"));
                consumer.subscribe(List.of(words).subList(1, words.length));
            } else if (words[0].equals("close")) {
                break;
            }
        }
        say("closing");
        consumer.close();
        say("closed");
    }

    private void acknowledge(ConsumerRecord<byte[], byte[]> record) {
        AcknowledgeType type = TYPES.get(types.charAt((int) record.offset() % types.length()));
        if (type == AcknowledgeType.RENEW
                && !renewed.add(record.topic() + "-" + record.partition() + "-" + record.offset())) {
            type = AcknowledgeType.ACCEPT;
        }
        consumer.acknowledge(record, type);
    }

    private static void say(String what) {
        System.out.println(what);
    }
}
