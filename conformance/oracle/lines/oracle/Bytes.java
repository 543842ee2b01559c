package oracle;

import com.fasterxml.jackson.databind.JsonNode;

import java.nio.ByteBuffer;
import java.util.Base64;

/** Bytes as JSON has them. */
public final class Bytes {
    private Bytes() { }

    public static String base64(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return Base64.getEncoder().encodeToString(copy);
    }

    /** The bytes of a base64 text, or null where there is none. */
    public static byte[] raw(JsonNode node) { return node != null && node.isTextual() ? Base64.getDecoder().decode(node.asText()) : null; }

    /** The `frame` of a command. */
    public static ByteBuffer frame(JsonNode command) { return ByteBuffer.wrap(Base64.getDecoder().decode(command.get("frame").asText())); }
}
