package served;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.TopicPartition;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * One process that serves a whole cluster: the command in the system property {@code served.command}, in a folder below
 * {@code served.folder}. Brokers are stopped and resumed over its control surface.
 */
public final class ServedProcess {
    private static final AtomicInteger STARTED = new AtomicInteger();
    private static final long BOOT_TIMEOUT_MS = 60_000, POLL_MS = 20, STOP_TIMEOUT_S = 10, FENCE_TIMEOUT_MS = 10_000;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Pattern WORD = Pattern.compile("('[^']*'|\\S)+"); // As Python's shlex.join quotes a path with spaces.

    private final Process process;
    private final String control;
    private final String clusterId;
    private final Map<String, Map<Integer, Integer>> ports = new TreeMap<>();

    /**
     * Start a cluster and wait until it answers.
     *
     * @param listeners of the first broker, as {@code EXTERNAL://localhost:0}
     * @param brokers how many
     * @param properties of server.properties
     * @param options further options of the command
     */
    public ServedProcess(String listeners, int brokers, Map<String, String> properties, List<String> options) throws IOException, InterruptedException {
        Path folder = Path.of(System.getProperty("served.folder"), "cluster-" + ProcessHandle.current().pid() + "-" + STARTED.incrementAndGet());
        Files.createDirectories(folder);
        Path settings = folder.resolve("server.properties"), ready = folder.resolve("ready.json"), log = folder.resolve("log.txt");
        Files.writeString(settings, properties.entrySet().stream().map(each -> each.getKey() + "=" + escaped(each.getValue()) + "\n").collect(Collectors.joining()));
        List<String> command = new ArrayList<>(WORD.matcher(System.getProperty("served.command")).results().map(word -> word.group().replace("'", "")).toList());
        command.addAll(List.of("--listeners", listeners, "--brokers", "" + brokers, "--config", settings.toString(), "--ready-file", ready.toString()));
        command.addAll(options);
        process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        long deadline = System.currentTimeMillis() + BOOT_TIMEOUT_MS;
        while (!Files.exists(ready) || Files.size(ready) == 0) {
            if (!process.isAlive() || System.currentTimeMillis() > deadline) {
                process.destroyForcibly();
                throw new IllegalStateException("the served cluster did not start: " + Files.readString(log) + " " + properties);
            }
            Thread.sleep(POLL_MS);
        }
        JsonNode where = JSON.readTree(ready.toFile());
        control = where.get("control").asText();
        clusterId = where.get("cluster_id").asText();
        where.get("listeners").properties().forEach(listener -> {
            Map<Integer, Integer> own = ports.computeIfAbsent(listener.getKey().toUpperCase(Locale.ROOT), name -> new TreeMap<>());
            String[] addresses = listener.getValue().asText().split(",");
            for (int i = 0; i < addresses.length; i++) {
                own.put(where.get("brokers").get(i).asInt(), Integer.parseInt(addresses[i].substring(addresses[i].lastIndexOf(':') + 1)));
            }
        });
    }

    private static String escaped(String value) {
        return value.replace("\\", "\\\\").replace("\n", "\\n");
    }

    public String clusterId() {
        return clusterId;
    }

    public int port(String listener, int broker) {
        return of(listener).get(broker);
    }

    private Map<Integer, Integer> of(String listener) {
        Map<Integer, Integer> own = ports.get(listener.toUpperCase(Locale.ROOT));
        if (own == null) throw new IllegalArgumentException("no listener " + listener + " among " + ports.keySet());
        return own;
    }

    public String bootstrap(String listener) {
        return of(listener).values().stream().map(port -> "localhost:" + port).collect(Collectors.joining(","));
    }

    /** Stop one broker, and wait until the others, if any, have taken over: a broker of Kafka's shuts down no sooner. */
    public void stopBroker(int broker, boolean othersTakeOver) throws InterruptedException {
        call("POST", "/v1/brokers/" + broker + "/stop");
        long deadline = System.currentTimeMillis() + FENCE_TIMEOUT_MS;
        while (othersTakeOver && !call("GET", "/v1/brokers/" + broker).get("fenced").asBoolean() && System.currentTimeMillis() < deadline) Thread.sleep(POLL_MS);
    }

    /** Resume a stopped broker on its port. */
    public void resumeBroker(int broker) {
        call("POST", "/v1/brokers/" + broker + "/resume");
    }

    /** Close the active segment of a partition and clean its log, as soon as asked. */
    public void compact(TopicPartition partition) {
        call("POST", "/v1/topics/" + partition.topic() + "/partitions/" + partition.partition() + "/compact");
    }

    private JsonNode call(String method, String path) {
        try {
            HttpURLConnection connection = (HttpURLConnection) URI.create(control + path).toURL().openConnection();
            connection.setRequestMethod(method);
            connection.setRequestProperty("Content-Type", "application/json");
            connection.setRequestProperty("Connection", "close"); // A kept connection has threads, which tests take for a leak.
            if (method.equals("POST")) {
                connection.setDoOutput(true);
                connection.getOutputStream().write("{}".getBytes(StandardCharsets.UTF_8));
            }
            int status = connection.getResponseCode();
            boolean already = status == HttpURLConnection.HTTP_CONFLICT;
            if (status >= HttpURLConnection.HTTP_BAD_REQUEST && !already) throw new IllegalStateException(path + ": " + status);
            try (InputStream body = already ? connection.getErrorStream() : connection.getInputStream()) {
                return JSON.readTree(body);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(path, error);
        }
    }

    /** End the process. */
    public void stop() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(STOP_TIMEOUT_S, TimeUnit.SECONDS)) process.destroyForcibly().waitFor();
    }
}
