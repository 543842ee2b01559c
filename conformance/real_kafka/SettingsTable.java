import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints every setting of a broker, a topic and a group that a release knows, one JSON object a line;
 * with the argument "documentation" what the release says of each, and of those of client metrics.
 */
public class SettingsTable {
    public static void main(String[] arguments) throws ReflectiveOperationException {
        if (arguments.length > 0) {
            ConfigDef metrics = definition("org.apache.kafka.server.metrics.ClientMetricsConfigs");
            document("broker", broker());
            document("topic", topic());
            document("group", group());
            document("client-metrics", metrics);
            return;
        }
        Map<String, String> synonyms = topicSynonyms();
        print("broker", broker(), dynamicNames(), Map.of());
        print("topic", topic(), Set.of(), synonyms);
        print("group", group(), Set.of(), Map.of());
    }

    private static ConfigDef broker() throws ReflectiveOperationException {
        return definition("org.apache.kafka.server.config.AbstractKafkaConfig", "kafka.server.KafkaConfig$");
    }

    private static ConfigDef topic() throws ReflectiveOperationException {
        return definition("org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig$");
    }

    private static ConfigDef group() throws ReflectiveOperationException {
        return definition("org.apache.kafka.coordinator.group.GroupConfig");
    }

    private static void document(String of, ConfigDef definition) {
        if (definition == null)
            return;
        for (ConfigDef.ConfigKey key : definition.configKeys().values())
            if (key.documentation != null)
                System.out.println("{\"of\":" + quote(of) + ",\"name\":" + quote(key.name) + ",\"text\":" + quote(key.documentation) + "}");
    }

    /** A static field, or one of a Scala object; null where a release has no such class or field. */
    private static Object constant(String type, String... names) throws ReflectiveOperationException {
        Class<?> found;
        try {
            found = Class.forName(type);
        } catch (ClassNotFoundException absent) {
            return null;
        }
        for (String name : names) {
            for (Field field : found.getDeclaredFields()) {
                if (!field.getName().equals(name) && !field.getName().endsWith("$$" + name))
                    continue;
                field.setAccessible(true);
                boolean isStatic = Modifier.isStatic(field.getModifiers());
                return field.get(isStatic ? null : found.getField("MODULE$").get(null));
            }
        }
        return null;
    }

    private static ConfigDef definition(String... types) throws ReflectiveOperationException {
        for (String type : types) {
            Object found = constant(type, "CONFIG_DEF", "CONFIG", "configDef");
            if (found != null)
                return (ConfigDef) found;
        }
        return null;
    }

    private static Set<String> dynamicNames() throws ReflectiveOperationException {
        Set<String> names = new TreeSet<>();
        Object found = constant("org.apache.kafka.server.config.DynamicBrokerConfig", "ALL_DYNAMIC_CONFIGS");
        if (found == null)
            found = constant("kafka.server.DynamicBrokerConfig$", "AllDynamicConfigs");
        each(found, name -> names.add(name.toString()));
        return names;
    }

    /** The broker's setting for each of a topic. */
    private static Map<String, String> topicSynonyms() throws ReflectiveOperationException {
        Map<String, String> names = new HashMap<>();
        Object found = constant("org.apache.kafka.server.config.ServerTopicConfigSynonyms", "TOPIC_CONFIG_SYNONYMS");
        if (found == null)
            found = constant("kafka.log.LogConfig$", "TopicConfigSynonyms");
        if (found == null) {
            Object definition = constant("kafka.log.LogConfig$", "configDef");
            found = inside(definition, "serverDefaultConfigNames");
        }
        if (found instanceof Map)
            ((Map<?, ?>) found).forEach((topic, broker) -> names.put(topic.toString(), broker.toString()));
        else
            each(found, pair -> names.put(call(pair, "_1").toString(), call(pair, "_2").toString()));
        return names;
    }

    /** Go through a collection of Java or Scala; there is nothing in null. */
    private static void each(Object collection, Consumer<Object> take) {
        if (collection == null)
            return;
        if (collection instanceof Iterable) {
            ((Iterable<?>) collection).forEach(take);
            return;
        }
        Object iterator = call(collection, "iterator");
        while ((Boolean) call(iterator, "hasNext"))
            take.accept(call(iterator, "next"));
    }

    private static Object call(Object object, String name) {
        try {
            Method found = object.getClass().getMethod(name);
            found.setAccessible(true);
            return found.invoke(object);
        } catch (ReflectiveOperationException unexpected) {
            throw new IllegalStateException(name, unexpected);
        }
    }

    private static void print(String of, ConfigDef definition, Set<String> dynamic, Map<String, String> synonyms)
        throws ReflectiveOperationException {
        if (definition == null)
            return;
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            List<String> parts = new ArrayList<>();
            parts.add("\"of\":" + quote(of));
            parts.add("\"name\":" + quote(key.name));
            parts.add("\"type\":" + quote(key.type.name()));
            if (key.defaultValue != ConfigDef.NO_DEFAULT_VALUE && key.defaultValue != null)
                parts.add("\"default\":" + quote(ConfigDef.convertToString(key.defaultValue, key.type)));
            if (key.defaultValue == ConfigDef.NO_DEFAULT_VALUE)
                parts.add("\"required\":true");
            if (Boolean.TRUE.equals(inside(key, "internalConfig")))
                parts.add("\"internal\":true");
            if (dynamic.contains(key.name))
                parts.add("\"dynamic\":true");
            if (synonyms.get(key.name) != null)
                parts.add("\"synonym\":" + quote(synonyms.get(key.name)));
            if (key.validator != null)
                check(key.validator, parts);
            System.out.println("{" + String.join(",", parts) + "}");
        }
    }

    private static Object inside(Object object, String field) throws ReflectiveOperationException {
        try {
            Field found = object.getClass().getDeclaredField(field);
            found.setAccessible(true);
            return found.get(object);
        } catch (NoSuchFieldException absent) {
            return null;
        }
    }

    private static void check(ConfigDef.Validator validator, List<String> parts) throws ReflectiveOperationException {
        String type = validator.getClass().getSimpleName();
        if (type.equals("Range")) {
            if (inside(validator, "min") != null)
                parts.add("\"atLeast\":" + quote(inside(validator, "min").toString()));
            if (inside(validator, "max") != null)
                parts.add("\"atMost\":" + quote(inside(validator, "max").toString()));
        } else if (type.equals("ValidString") || type.equals("CaseInsensitiveValidString")) {
            parts.add("\"oneOf\":" + strings((Iterable<?>) inside(validator, "validStrings")));
            if (type.startsWith("Case"))
                parts.add("\"ignoresCase\":true");
        } else if (type.equals("ValidList")) {
            parts.add("\"oneOf\":" + strings((Iterable<?>) inside(inside(validator, "validString"), "validStrings")));
            if (Boolean.FALSE.equals(inside(validator, "isEmptyAllowed")))
                parts.add("\"nonEmpty\":true");
            if (inside(validator, "isEmptyAllowed") != null)
                parts.add("\"distinct\":true");
        } else {
            String said = validator.toString();
            boolean tells = !said.isEmpty() && said.length() <= 60 && !said.contains("@");
            parts.add("\"rule\":" + quote(tells ? said : type.replace("$", "")));
        }
    }

    private static String strings(Iterable<?> values) {
        List<String> quoted = new ArrayList<>();
        values.forEach(value -> quoted.add(quote(value.toString())));
        return "[" + String.join(",", quoted) + "]";
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\')
                quoted.append('\\').append(letter);
            else if (letter < ' ' || letter > '~')
                quoted.append(String.format("\\u%04x", (int) letter));
            else
                quoted.append(letter);
        }
        return quoted.append('"').toString();
    }
}
