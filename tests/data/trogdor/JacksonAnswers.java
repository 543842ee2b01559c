// Answers of Kafka's own JsonUtil: reads lines {"kind", "body"} and writes each with what Kafka makes of it.
//
// With Kafka's jar trogdor 4.3.1 and what it needs in lib/:
//   javac -cp 'lib/*' -d classes JacksonAnswers.java
//   java -cp 'classes:lib/*' JacksonAnswers < jackson.jsonl > again.jsonl

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.exc.InvalidTypeIdException;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.trogdor.common.JsonUtil;
import org.apache.kafka.trogdor.workload.PayloadGenerator;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

public class JacksonAnswers {
    private static final ObjectMapper PLAIN = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        String line;
        while ((line = in.readLine()) != null) {
            out.println(PLAIN.writeValueAsString(answer(PLAIN.readTree(line))));
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = PLAIN.createObjectNode();
        answer.set("kind", question.get("kind"));
        answer.set("body", question.get("body"));
        try {
            Object value = read(question);
            answer.put("code", value == null ? 500 : 200);
            if (value != null) {
                answer.put("written", JsonUtil.toJsonString(value));
                if (question.has("pretty")) {
                    answer.put("pretty", JsonUtil.toPrettyJsonString(value));
                }
                if (question.has("positions")) {
                    payloads(answer, question, (PayloadGenerator) value);
                }
            }
        } catch (Exception e) {
            // As RestExceptionMapper does.
            answer.put("code", e instanceof InvalidTypeIdException ? 501 : e instanceof JsonMappingException ? 400 : 500);
        }
        return answer;
    }

    // As the JSON provider of the REST server does: no value at all is null.
    private static Object read(JsonNode question) throws Exception {
        byte[] body = question.get("body").asText().getBytes(StandardCharsets.UTF_8);
        JsonParser parser = JsonUtil.JSON_SERDE.getFactory().createParser(body);
        if (parser.nextToken() == null) {
            return null;
        }
        return JsonUtil.JSON_SERDE.readerFor(kind(question.get("kind").asText())).readValue(parser);
    }

    private static Class<?> kind(String name) throws Exception {
        String folder = name.equals("TaskSpec") ? "task." : name.equals("PayloadGenerator") ? "workload." : "rest.";
        return Class.forName("org.apache.kafka.trogdor." + folder + name);
    }

    private static void payloads(ObjectNode answer, JsonNode question, PayloadGenerator generator) {
        answer.set("positions", question.get("positions"));
        ArrayNode payloads = answer.putArray("payloads");
        for (JsonNode position : question.get("positions")) {
            byte[] payload = generator.generate(position.asLong());
            if (payload == null) {
                payloads.addNull();
            } else {
                payloads.add(HexFormat.of().formatHex(payload));
            }
        }
    }
}
