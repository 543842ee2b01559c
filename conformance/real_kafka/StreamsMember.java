import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData.TaskId;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.internals.ConsumerWrapper;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;

/** One instance of a Kafka Streams application with one thread, which says what its consumer does. */
public class StreamsMember {
    private static final String SUFFIX = "-StreamThread-1-consumer";

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("group.protocol", "streams");
        settings.put("state.dir", Files.createTempDirectory("streams").toString());
        settings.put("poll.ms", "10");
        settings.put("auto.offset.reset", "earliest");
        settings.put("dsl.store.suppliers.class",
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers");
        settings.put("__internal.consumer.wrapper__", Told.class);
        for (String each : Arrays.asList(arguments).subList(3, arguments.length)) {
            String[] parts = each.split("=", 2);
            // The id of the consumer tells that of the instance.
            settings.put(parts[0], parts[1].replace(SUFFIX, ""));
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(Serdes.String(), Serdes.String()))
            .selectKey((key, value) -> value)
            .groupByKey(Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("totals"));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            say("failed " + error.getClass().getSimpleName());
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            if (line.equals("close")) {
                break;
            }
            if (line.equals("shutdown")) {
                say("shutdown");
                Told.data.requestShutdown();
            }
        }
        streams.close(Duration.ofSeconds(10));
    }

    private static synchronized void say(String what) {
        System.out.println(what);
    }

    /** The consumer of the thread, which says what is done with it. */
    public static class Told extends ConsumerWrapper {
        private static StreamsRebalanceData data;
        private static Map<TaskId, Long> sums = Map.of();
        private boolean hasPolled;

        @Override
        public void wrapConsumer(AsyncKafkaConsumer<byte[], byte[]> consumer,
                Map<String, Object> config, Optional<StreamsRebalanceData> shared) {
            super.wrapConsumer(consumer, config, shared);
            data = shared.get();
            replace("taskOffsetSum", found -> sums = found);
            // Asked second for every heartbeat.
            replace("taskEndOffsetSum", found -> say("offsets" + told(sums) + " /" + told(found)));
        }

        /** Has a map looked at whenever a heartbeat is built from it. */
        @SuppressWarnings("unchecked")
        private static void replace(String name, Consumer<Map<TaskId, Long>> look) {
            try {
                Field field = StreamsRebalanceData.class.getDeclaredField(name);
                field.setAccessible(true);
                Supplier<Map<TaskId, Long>> original =
                    (Supplier<Map<TaskId, Long>>) field.get(data);
                field.set(data, (Supplier<Map<TaskId, Long>>) () -> {
                    Map<TaskId, Long> found = original.get();
                    look.accept(found);
                    return found;
                });
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void subscribe(Collection<String> topics, StreamsRebalanceListener listener) {
            super.subscribe(topics, new StreamsRebalanceListener() {
                @Override
                public void onTasksRevoked(java.util.Set<TaskId> tasks) {
                    say("revoked");
                    listener.onTasksRevoked(tasks);
                    say("returned");
                }

                @Override
                public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
                    say("assigned");
                    listener.onTasksAssigned(assignment);
                    say("returned");
                }

                @Override
                public void onAllTasksLost() {
                    say("lost");
                    listener.onAllTasksLost();
                    say("returned");
                }
            });
        }

        @Override
        public ConsumerRecords<byte[], byte[]> poll(Duration timeout) {
            if (!hasPolled) {
                hasPolled = true;
                say("subscribe");
            }
            return super.poll(timeout);
        }

        @Override
        public void close(CloseOptions options) {
            say("closing " + operationOf(options));
            super.close(options);
            say("closed");
        }

        private static Object operationOf(CloseOptions options) {
            try {
                Field operation = CloseOptions.class.getDeclaredField("operation");
                operation.setAccessible(true);
                return operation.get(options);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }

        private static String told(Map<TaskId, Long> offsets) {
            StringBuilder text = new StringBuilder();
            new TreeMap<>(offsets).forEach((task, sum) -> text.append(" ").append(task).append("=")
                .append(sum));
            return text.toString();
        }
    }
}
