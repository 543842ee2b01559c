import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.RestartRequest;
import org.apache.kafka.connect.runtime.SessionKey;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.ConfigBackingStore;
import org.apache.kafka.connect.storage.KafkaConfigBackingStore;
import org.apache.kafka.connect.util.Callback;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.connect.util.KafkaBasedLog;

/**
 * Connect's own config store without a topic: takes lines, prints what the store makes of them.
 * {@code new} begins a store, {@code start} starts it, and {"k": key, "v": value in base64 or null}
 * is a record, answered with the snapshot, the exception and what the listener heard.
 */
public final class ConfigStore {
    private static final List<String> CONNECTORS = List.of("a", "b", "a-1", "c-");
    private static final int TASKS = 4;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final List<List<String>> heard = new ArrayList<>();
    private final KafkaConfigBackingStore store;
    private final Callback<ConsumerRecord<String, byte[]>> consumed;
    private long offset;

    @SuppressWarnings("unchecked")
    private ConfigStore() throws Exception {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false"), false);
        store = new KafkaConfigBackingStore(converter, config(), null, () -> null, "x-");
        Field log = KafkaConfigBackingStore.class.getDeclaredField("configLog");
        log.setAccessible(true);
        Field callback = KafkaBasedLog.class.getDeclaredField("consumedCallback");
        callback.setAccessible(true);
        consumed = (Callback<ConsumerRecord<String, byte[]>>) callback.get(log.get(store));
        log.set(store, new NoLog(consumed));
        store.setUpdateListener(new Listener());
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ConfigStore subject = new ConfigStore();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            switch (line) {
                case "new" -> subject = new ConfigStore();
                case "start" -> subject.store.start();
                default -> System.out.println(subject.read(MAPPER.readTree(line)));
            }
        }
        System.exit(0);
    }

    /** A configuration that asks no broker for the cluster's id. */
    private static DistributedConfig config() throws Exception {
        Map<String, String> settings = new HashMap<>();
        settings.put("bootstrap.servers", "localhost:1");
        settings.put("group.id", "g");
        for (String name : List.of("config", "offset", "status")) {
            settings.put(name + ".storage.topic", name);
        }
        settings.put("key.converter", JsonConverter.class.getName());
        settings.put("value.converter", JsonConverter.class.getName());
        DistributedConfig config = new DistributedConfig(settings);
        Field id = WorkerConfig.class.getDeclaredField("kafkaClusterId");
        id.setAccessible(true);
        id.set(config, "x");
        return config;
    }

    private String read(JsonNode line) throws Exception {
        JsonNode encoded = line.get("v");
        byte[] value = encoded.isNull() ? null : Base64.getDecoder().decode(encoded.asText());
        String error = "";
        try {
            String key = line.get("k").asText();
            consumed.onCompletion(null, new ConsumerRecord<>("config", 0, offset++, key, value));
        } catch (RuntimeException e) {
            error = e.getClass().getSimpleName();
        }
        return MAPPER.writeValueAsString(state(error));
    }

    private Map<String, Object> state(String error) {
        ClusterConfigState snapshot = store.snapshot();
        Map<String, Object> connectors = new TreeMap<>();
        for (String name : CONNECTORS) {
            connectors.put(name, connector(snapshot, name));
        }
        Map<String, Object> state = new TreeMap<>();
        state.put("connectors", connectors);
        state.put("order", new ArrayList<>(snapshot.connectors()));
        state.put("offset", snapshot.offset());
        state.put("error", error);
        state.put("key", text(snapshot.sessionKey()));
        state.put("heard", new ArrayList<>(heard));
        heard.clear();
        return state;
    }

    private static Map<String, Object> connector(ClusterConfigState snapshot, String name) {
        Map<String, Object> found = new TreeMap<>();
        List<Object> configs = new ArrayList<>();
        for (int number = 0; number < TASKS; number++) {
            configs.add(snapshot.rawTaskConfig(new ConnectorTaskId(name, number)));
        }
        found.put("config", snapshot.rawConnectorConfig(name));
        found.put("applied", snapshot.appliedConnectorConfig(name));
        found.put("target", snapshot.targetState(name));
        found.put("count", snapshot.taskCount(name));
        found.put("pending", snapshot.pendingFencing(name));
        found.put("record", snapshot.taskCountRecord(name));
        found.put("generation", snapshot.taskConfigGeneration(name));
        found.put("inconsistent", snapshot.inconsistentConnectors().contains(name));
        found.put("configs", configs);
        return found;
    }

    private static String text(SessionKey key) {
        return key == null ? null
            : key.key().getAlgorithm() + " " + key.creationTimestamp() + " "
                + Base64.getEncoder().encodeToString(key.key().getEncoded());
    }

    /** In the place of the topic's log: nothing is read but what is handed over. */
    private static final class NoLog extends KafkaBasedLog<String, byte[]> {
        NoLog(Callback<ConsumerRecord<String, byte[]>> consumed) {
            super("config", Map.of(), Map.of(), () -> null, consumed, Time.SYSTEM, admin -> { });
        }

        @Override
        public void start() {
            // There is nothing to be read.
        }

        @Override
        public int partitionCount() {
            return 1;
        }
    }

    /** Writes down what it hears. */
    private final class Listener implements ConfigBackingStore.UpdateListener {
        @Override
        public void onConnectorConfigRemove(String connector) {
            heard.add(List.of("removed", connector));
        }

        @Override
        public void onConnectorConfigUpdate(String connector) {
            heard.add(List.of("updated", connector));
        }

        @Override
        public void onTaskConfigUpdate(Collection<ConnectorTaskId> tasks) {
            List<String> line = new ArrayList<>(List.of("tasks"));
            tasks.forEach(task -> line.add(task.connector() + "/" + task.task()));
            heard.add(line);
        }

        @Override
        public void onConnectorTargetStateChange(String connector) {
            heard.add(List.of("target", connector));
        }

        @Override
        public void onSessionKeyUpdate(SessionKey key) {
            heard.add(List.of("key", text(key)));
        }

        @Override
        public void onRestartRequest(RestartRequest request) {
            heard.add(List.of("restart", request.connectorName(),
                "" + request.onlyFailed(), "" + request.includeTasks()));
        }

        @Override
        public void onLoggingLevelUpdate(String namespace, String level) {
            heard.add(List.of("level", namespace, level));
        }
    }
}
