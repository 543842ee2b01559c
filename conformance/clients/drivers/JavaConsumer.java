import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Drives Java's consumer: BOOTSTRAP GROUP TOPIC NAME=VALUE...; what is read from standard input and
 * printed is told in clients/driver.py. The consumer is polled until it throws, and then left.
 */
public class JavaConsumer implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(500);
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final TopicPartition first;
    private boolean polls = true;

    private JavaConsumer(Properties settings, TopicPartition first) {
        var bytes = new ByteArrayDeserializer();
        this.consumer = new KafkaConsumer<>(settings, bytes, bytes);
        this.first = first;
    }

    public static void main(String[] arguments) throws Exception {
        say("hello", "\"client\": \"java\", \"version\": \"" + version()
            + "\", \"lacks\": {}");
        Properties settings = new Properties();
        for (String each : Arrays.asList(arguments).subList(3, arguments.length)) {
            String[] parts = each.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.computeIfPresent("partition.assignment.strategy", (name, value) -> Arrays
            .stream(((String) value).split(",")).map(ASSIGNORS::get)
            .collect(Collectors.joining(",")));
        Object place = settings.remove("assign");
        var driver = new JavaConsumer(settings, new TopicPartition(arguments[2], 0));
        if (place == null) {
            driver.consumer.subscribe(List.of(arguments[2]), driver);
        } else {
            int partition = Integer.parseInt((String) place);
            driver.consumer.assign(List.of(new TopicPartition(arguments[2], partition)));
        }
        driver.drive(commands());
    }

    private static String version() throws Exception {
        Properties told = new Properties();
        told.load(KafkaConsumer.class.getResourceAsStream("/kafka/kafka-version.properties"));
        return told.getProperty("version");
    }

    /** The lines of standard input, read by a thread; its end is a close. */
    private static Queue<String> commands() {
        Queue<String> read = new ConcurrentLinkedQueue<>();
        Thread reader = new Thread(() -> {
            new BufferedReader(new InputStreamReader(System.in)).lines().forEach(read::add);
            read.add("close");
        });
        reader.setDaemon(true);
        reader.start();
        return read;
    }

    private void drive(Queue<String> commands) throws InterruptedException {
        String command = "";
        while (!command.equals("close")) {
            String next = commands.poll();
            command = next == null ? "" : next;
            try {
                act(command);
            } catch (RuntimeException error) {
                fail(error);
            }
            if (!polls) {
                Thread.sleep(POLL.toMillis());
                continue;
            }
            try {
                consumer.poll(POLL);
            } catch (RuntimeException error) {
                polls = false;
                fail(error);
            }
        }
    }

    private void act(String command) {
        String[] words = command.split(" ", 2);
        switch (words[0]) {
            case "commit" -> {
                Set<TopicPartition> owned = consumer.assignment();
                Map<TopicPartition, OffsetAndMetadata> offsets = new TreeMap<>(
                    (one, other) -> one.toString().compareTo(other.toString()));
                for (TopicPartition each : owned.isEmpty() ? Set.of(first) : owned) {
                    offsets.put(each, new OffsetAndMetadata(1));
                }
                consumer.commitSync(offsets);
                say("committed", "\"partitions\": []");
            }
            case "subscribe" -> consumer.subscribe(List.of(words[1]), this);
            case "pause" -> polls = false;
            case "close" -> {
                polls = false;
                consumer.close();
                say("closed", "\"partitions\": []");
            }
            default -> { }
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tell("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        tell("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        tell("lost", partitions);
    }

    private static void tell(String event, Collection<TopicPartition> partitions) {
        say(event, partitions.stream().map(each -> "\"" + each + "\"")
            .collect(Collectors.joining(", ", "\"partitions\": [", "]")));
    }

    private static void fail(RuntimeException error) {
        String words = error.getClass().getSimpleName() + ": " + error.getMessage();
        say("error", "\"message\": \"" + words.replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"");
    }

    private static synchronized void say(String event, String facts) {
        System.out.println("{\"event\": \"" + event + "\", \"at_ms\": "
            + System.currentTimeMillis() + ", " + facts + "}");
    }
}
