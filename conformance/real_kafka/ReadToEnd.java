import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.storage.KafkaOffsetBackingStore;
import org.apache.kafka.connect.util.SharedTopicAdmin;

/**
 * What a Connect worker's start costs: fills an offset topic, and has Connect's own store read it to
 * its end. Arguments: bootstrap, topic, partitions, records, bytes of key and value, rounds. Each
 * round prints a line of NAME=NUMBER; the first is cold, as a worker's start is.
 */
public final class ReadToEnd {
    private static final String KEY = "[\"connector-%03d\",{\"file\":\"%s%09d\"}]";
    private static final String VALUE = "{\"position\":1000000}";
    private static final int SMALLEST = String.format(KEY, 0, "", 0).length() + VALUE.length();
    private static final int CONNECTORS = 900;

    private final String bootstrap;
    private final String topic;

    private ReadToEnd(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    public static void main(String[] args) throws Exception {
        ReadToEnd run = new ReadToEnd(args[0], args[1]);
        int partitions = Integer.parseInt(args[2]);
        run.fill(partitions, Integer.parseInt(args[3]), Integer.parseInt(args[4]));
        for (int round = 1; round <= Integer.parseInt(args[5]); round++) {
            run.read(partitions, round);
        }
    }

    /** Records of as many keys. */
    private void fill(int partitions, int records, int size) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap));
        try (Admin admin = Admin.create(settings)) {
            NewTopic made = new NewTopic(topic, partitions, (short) 1);
            made.configs(Map.of("cleanup.policy", "compact"));
            admin.createTopics(List.of(made)).all().get();
        }
        settings.put("linger.ms", "20");
        settings.put("batch.size", "65536");
        String padding = "x".repeat(Math.max(0, size - SMALLEST));
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            for (int i = 0; i < records; i++) {
                String key = String.format(KEY, i % CONNECTORS, padding, i);
                producer.send(new ProducerRecord<>(topic, key.getBytes(), VALUE.getBytes()));
            }
        }
    }

    /** One start of the store, and what it cost. */
    private void read(int partitions, int round) throws Exception {
        String clientId = "round-" + round + "-";
        DistributedConfig config = new DistributedConfig(settings(partitions));
        JsonConverter keys = new JsonConverter();
        keys.configure(Map.of("schemas.enable", "false"), true);
        try (SharedTopicAdmin admin = new SharedTopicAdmin(config.originals())) {
            KafkaOffsetBackingStore store =
                new KafkaOffsetBackingStore(admin, () -> clientId, keys);
            store.configure(config);
            long cpu = threadNanos();
            long collected = collectedMillis();
            long began = System.nanoTime();
            store.start();
            System.out.printf("wall_ms=%d cpu_ms=%d gc_ms=%d %s%n",
                (System.nanoTime() - began) / 1_000_000, (threadNanos() - cpu) / 1_000_000,
                collectedMillis() - collected, metrics(clientId + "offsets"));
            store.stop();
        }
    }

    private Map<String, String> settings(int partitions) {
        Map<String, String> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "measured");
        settings.put("offset.storage.topic", topic);
        settings.put("offset.storage.partitions", Integer.toString(partitions));
        settings.put("offset.storage.replication.factor", "1");
        settings.put("config.storage.topic", "configs");
        settings.put("status.storage.topic", "statuses");
        settings.put("key.converter", JsonConverter.class.getName());
        settings.put("value.converter", JsonConverter.class.getName());
        return settings;
    }

    private static String metrics(String clientId) throws Exception {
        ObjectName fetches = new ObjectName(
            "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=" + clientId);
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        return String.format("records=%.0f bytes=%.0f fetches=%.0f fetch_ms=%.1f",
            server.getAttribute(fetches, "records-consumed-total"),
            server.getAttribute(fetches, "bytes-consumed-total"),
            server.getAttribute(fetches, "fetch-total"),
            server.getAttribute(fetches, "fetch-latency-avg"));
    }

    private static long threadNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private static long collectedMillis() {
        long total = 0;
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            total += bean.getCollectionTime();
        }
        return total;
    }
}
