package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.UUID;

/** One JSON command per line in, one JSON answer per line out, and the operations that are the same for every Kafka. */
public abstract class Lines<W extends VirtualWorld> {
    protected static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final int BUFFER_BYTES = 1 << 16;

    /** What is asked; null before the first `init`. */
    protected W world;
    /** Of the requests that completed during this command, in order. */
    protected ArrayNode replies;
    /** Appended during this command. */
    protected ArrayNode records;
    private Lines<?> answering = this;

    /** Answers standard input to its end. */
    protected final void serve() throws IOException {
        SeededRandomProvider.install();
        OutputStream out = new BufferedOutputStream(System.out, BUFFER_BYTES);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), BUFFER_BYTES);
        for (String line; (line = in.readLine()) != null; ) {
            if (line.isBlank()) continue;
            out.write(MAPPER.writeValueAsBytes(step(line)));
            out.write('\n');
            if (!in.ready()) out.flush(); // pipelined input is answered in large writes
        }
        out.flush();
    }

    /** Who answers from this `init` on. */
    protected Lines<?> behind(JsonNode init) { return this; }

    private ObjectNode step(String line) {
        try {
            JsonNode command = MAPPER.readTree(line);
            if (command.path("op").asText().equals("init")) answering = behind(command);
            return answering.answer(command);
        } catch (IOException | RuntimeException e) { // no JSON, or no such coordinator
            return JSON.objectNode().put("error", e.toString());
        }
    }

    private ObjectNode answer(JsonNode command) {
        replies = JSON.arrayNode();
        records = JSON.arrayNode();
        ObjectNode answer = JSON.objectNode();
        try {
            if (command.has("id")) answer.set("id", command.get("id"));
            run(command, answer);
        } catch (Throwable t) { // the driver is told, whatever it was
            answer.put("error", t.toString());
        }
        if (world != null) answer.put("now", world.clock.ms);
        if (!replies.isEmpty()) answer.set("replies", replies);
        if (!records.isEmpty()) answer.set("records", records);
        return answer;
    }

    /** A harness has its own operations before these. */
    protected void run(JsonNode command, ObjectNode answer) throws Throwable {
        switch (command.get("op").asText()) {
            case "init" -> init(command);
            case "advance" -> world.advanceTo(world.clock.ms + command.get("ms").asLong());
            case "elect" -> each(command, p -> world.elect(p, command.path("epoch").asInt(1)));
            case "resign" -> each(command, p -> world.resign(p, epoch(command)));
            case "startup" -> { world.startup(); world.drain(); }
            case "shutdown" -> { world.shutdown(); world.drain(); }
            case "partitionFor" -> answer.put("partition", world.partitionFor(command.get("group").asText()));
            case "uuids" -> { for (JsonNode uuid : command.get("next")) SeededRandomProvider.script(UUID.fromString(uuid.asText())); }
            default -> throw new IllegalArgumentException("unknown op " + command.get("op"));
        }
    }

    private void init(JsonNode command) throws Exception {
        Map<String, String> config = new HashMap<>();
        command.path("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        SeededRandomProvider.seed(command.path("seed").asLong(0));
        world = begin(command, config, command.path("partitions").asInt(50), command.path("startMs").asLong(1_000_000));
        if (!command.path("started").asBoolean(true)) return;
        world.startup();
        world.drain();
        if (command.path("elect").asBoolean(true)) for (int p = 0; p < world.partitions; p++) world.elect(p, 1);
    }

    /** A new world; nothing of the last one is kept. */
    protected abstract W begin(JsonNode command, Map<String, String> config, int partitions, long startMs) throws Exception;

    private static OptionalInt epoch(JsonNode command) {
        return command.has("epoch") ? OptionalInt.of(command.get("epoch").asInt()) : OptionalInt.empty();
    }

    protected interface OnPartition { void on(int partition) throws Exception; }

    /** The partition of the command's group, its partition, or all of them. */
    protected final void each(JsonNode command, OnPartition action) throws Exception {
        if (command.has("group") || command.has("partition")) action.on(partition(command));
        else for (int p = 0; p < world.partitions; p++) action.on(p);
    }

    protected final int partition(JsonNode command) {
        return command.has("group") ? world.partitionFor(command.get("group").asText()) : command.get("partition").asInt();
    }

    /** A reply now to the command that had this id, if it had one. */
    protected final ObjectNode reply(JsonNode id) {
        ObjectNode reply = JSON.objectNode();
        if (id != null) reply.set("id", id);
        return reply.put("at", world.clock.ms);
    }
}
