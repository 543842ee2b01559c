package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.Pattern;

/** One process of `coordinator-sim lines`, and the JSON forms of what goes through it. */
final class Lines {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final Pattern WORD = Pattern.compile("('[^']*'|\\S)+"); // As Python's shlex.join quotes a path with spaces.
    private static Lines running;

    private final BufferedWriter commands;
    private final BufferedReader answers;

    private Lines() throws IOException {
        List<String> command = WORD.matcher(System.getProperty("door.lines")).results().map(word -> word.group().replace("'", "")).toList();
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        commands = new BufferedWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
        answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /** The process that all tests share; the op `init` begins a new world. */
    static Lines running() {
        try {
            if (running == null) running = new Lines();
            return running;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static ObjectNode command(String op) { return JSON.createObjectNode().put("op", op); }

    JsonNode send(ObjectNode command) {
        try {
            commands.write(JSON.writeValueAsString(command));
            commands.newLine();
            commands.flush();
            String line = answers.readLine();
            if (line == null) {
                running = null;
                throw new AssertionError("the coordinator has crashed at " + command);
            }
            if (Boolean.getBoolean("door.trace")) System.err.println("-> " + command + "\n<- " + line);
            JsonNode answer = JSON.readTree(line);
            if (answer.has("error")) throw new AssertionError("the coordinator refuses " + command + ": " + answer.get("error").asText());
            return answer;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    // -- forms: Kafka's own converters, found by the name of the message --------------------

    static JsonNode write(ApiMessage message, short version) {
        try {
            return (JsonNode) converter(message.getClass().getName()).getMethod("write", message.getClass(), short.class).invoke(null, message, version);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError("no JSON form of " + message, e);
        }
    }

    static ApiMessage read(String message, JsonNode data, short version) {
        // Kafka 4.4 renames the field.
        if (data.has("acceptableRecoveryLagLegacy")) ((ObjectNode) data).set("acceptableRecoveryLag", data.get("acceptableRecoveryLagLegacy"));
        try {
            return (ApiMessage) converter("org.apache.kafka.common.message." + message).getMethod("read", JsonNode.class, short.class).invoke(null, data, version);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError("no " + message + " of version " + version + ": " + data, e);
        }
    }

    private static Class<?> converter(String message) throws ClassNotFoundException { return Class.forName(message + "JsonConverter"); }

    static String unordered(CoordinatorRecord record) { return unordered(write(record)); }

    /** JSON whose lists are sorted. */
    static String unordered(JsonNode node) {
        if (node.isArray()) return java.util.stream.StreamSupport.stream(node.spliterator(), false).map(Lines::unordered).sorted().toList().toString();
        if (!node.isObject()) return node.toString();
        List<String> fields = new ArrayList<>();
        node.fields().forEachRemaining(each -> fields.add(each.getKey() + ":" + unordered(each.getValue())));
        return "{" + String.join(",", fields) + "}";
    }

    static JsonNode write(CoordinatorRecord record) {
        ObjectNode written = JSON.createObjectNode();
        written.putObject("key").put("type", record.key().apiKey()).set("data", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
        if (record.value() == null) return written.putNull("value");
        short version = record.value().version();
        written.putObject("value").put("version", version)
            .set("data", CoordinatorRecordJsonConverters.writeRecordValueAsJson(record.value().message(), version));
        return written;
    }

    static List<CoordinatorRecord> records(JsonNode answer) {
        List<CoordinatorRecord> records = new ArrayList<>();
        for (JsonNode record : answer.path("records")) {
            short type = (short) record.get("key").get("type").asInt();
            ApiMessage key = CoordinatorRecordJsonConverters.readRecordKeyFromJson(record.get("key").get("data"), type);
            JsonNode value = record.get("value");
            if (!value.isObject()) {
                records.add(CoordinatorRecord.tombstone(key));
                continue;
            }
            short version = (short) value.get("version").asInt();
            records.add(CoordinatorRecord.record(key, new ApiMessageAndVersion(
                CoordinatorRecordJsonConverters.readRecordValueFromJson(value.get("data"), type, version), version)));
        }
        return records;
    }
}
