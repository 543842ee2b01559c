import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Every message of the named APIs as JSON, one line each: the type of each field in each version as
 * its generated class declares it, and each field's default as its constructor sets it.
 */
public final class MessageSchemas {
    private static final String PACKAGE = "org.apache.kafka.common.message.";

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        for (ApiKeys api : ApiKeys.values()) {
            if (!List.of(args).contains(api.name))
                continue;
            for (String kind : List.of("Request", "Response")) {
                Class<?> message = Class.forName(PACKAGE + api.name + kind + "Data");
                ObjectNode line = json.createObjectNode();
                line.put("api", api.name);
                line.put("key", api.id);
                line.put("kind", kind);
                line.set("versions", versions(json, message));
                line.set("defaults", defaults(json, message));
                System.out.println(json.writeValueAsString(line));
            }
        }
    }

    /** By version; a version that equals the one before is left out. */
    private static ObjectNode versions(ObjectMapper json, Class<?> message) throws Exception {
        Schema[] schemas = (Schema[]) message.getField("SCHEMAS").get(null);
        ObjectNode versions = json.createObjectNode();
        String last = null;
        for (int version = 0; version < schemas.length; version++) {
            String text = schemas[version] == null ? null : struct(schemas[version]);
            if (version == 0 || !String.valueOf(text).equals(String.valueOf(last)))
                versions.put(String.valueOf(version), text);
            last = text;
        }
        versions.put("newest", schemas.length - 1);
        return versions;
    }

    private static String struct(Schema schema) throws Exception {
        List<String> fields = new ArrayList<>();
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields)
                fields.add("tags" + tags((TaggedFields) field.def.type));
            else
                fields.add(field.def.name + " " + type(field.def.type));
        }
        return "(" + String.join(", ", fields) + ")";
    }

    private static String tags(TaggedFields tags) throws Exception {
        Field known = TaggedFields.class.getDeclaredField("fields");
        known.setAccessible(true);
        List<String> fields = new ArrayList<>();
        for (Map.Entry<?, ?> entry : new TreeMap<>((Map<?, ?>) known.get(tags)).entrySet()) {
            org.apache.kafka.common.protocol.types.Field field =
                (org.apache.kafka.common.protocol.types.Field) entry.getValue();
            fields.add(entry.getKey() + ": " + field.name + " " + type(field.type));
        }
        return "(" + String.join(", ", fields) + ")";
    }

    private static String type(Type type) throws Exception {
        if (type instanceof Schema)
            return (type.isNullable() ? "?" : "") + struct((Schema) type);
        if (type.isArray()) {
            String kind = type.getClass().getSimpleName().startsWith("Compact") ? "compact[]" : "[]";
            return (type.isNullable() ? "?" : "") + kind + type(type.arrayElementType().get());
        }
        return type.toString();
    }

    /** What the constructor of a message, or of a struct in one, sets. */
    private static ObjectNode defaults(ObjectMapper json, Class<?> owner) throws Exception {
        Object made = owner.getDeclaredConstructor().newInstance();
        ObjectNode found = json.createObjectNode();
        for (Field field : owner.getDeclaredFields()) {
            String name = field.getName();
            if (Modifier.isStatic(field.getModifiers()) || name.startsWith("_")
                    || name.equals("next") || name.equals("prev"))
                continue;
            field.setAccessible(true);
            Object value = field.get(made);
            Class<?> struct = structOf(field);
            if (value == null || struct == null)
                put(found, name, value);
            if (struct != null)
                found.set(name + (value == null ? " of" : ""), defaults(json, struct));
        }
        return found;
    }

    /** The struct that a field is, or has a list of; null of a scalar. */
    private static Class<?> structOf(Field field) {
        Class<?> type = field.getType();
        if (Message.class.isAssignableFrom(type))
            return type;
        if (!Collection.class.isAssignableFrom(type))
            return null;
        java.lang.reflect.Type generic = field.getGenericType() instanceof ParameterizedType
            ? field.getGenericType() : type.getGenericSuperclass();
        Class<?> element = (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
        return Message.class.isAssignableFrom(element) ? element : null;
    }

    private static void put(ObjectNode found, String name, Object value) {
        if (value instanceof Boolean)
            found.put(name, (Boolean) value);
        else if (value instanceof Double)
            found.put(name, (Double) value);
        else if (value instanceof Number)
            found.put(name, ((Number) value).longValue());
        else if (value instanceof byte[] || value instanceof java.nio.ByteBuffer)
            found.put(name, "");
        else if (value instanceof Collection)
            found.putArray(name);
        else
            found.put(name, value == null ? null : value.toString());
    }

    private MessageSchemas() {
    }
}
