import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;

/** Prints every setting of a broker, a topic and a group that a release knows, one JSON object a line. */
public class SettingsTable {
    public static void main(String[] arguments) throws Exception {
        Set<String> dynamic = dynamicNames();
        Map<String, String> synonyms = topicSynonyms();
        print("broker", definition("org.apache.kafka.server.config.AbstractKafkaConfig", "CONFIG_DEF"), dynamic, Map.of());
        print("topic", definition("org.apache.kafka.storage.internals.log.LogConfig", "CONFIG"), Set.of(), synonyms);
        print("group", definition("org.apache.kafka.coordinator.group.GroupConfig", "CONFIG_DEF", "CONFIG"), Set.of(), Map.of());
    }

    private static Object constant(String type, String... fields) {
        for (String field : fields) {
            try {
                Field found = Class.forName(type).getDeclaredField(field);
                found.setAccessible(true);
                return found.get(null);
            } catch (ReflectiveOperationException absent) {
                continue;
            }
        }
        return null;
    }

    private static ConfigDef definition(String type, String... fields) throws Exception {
        Object found = constant(type, fields);
        if (found == null && type.endsWith("KafkaConfig"))
            found = Class.forName("kafka.server.KafkaConfig").getMethod("configDef").invoke(null);
        return (ConfigDef) found;
    }

    private static Set<String> dynamicNames() throws Exception {
        Set<String> names = new TreeSet<>();
        Object found = constant("org.apache.kafka.server.config.DynamicBrokerConfig", "ALL_DYNAMIC_CONFIGS");
        if (found instanceof Set) {
            ((Set<?>) found).forEach(name -> names.add(name.toString()));
            return names;
        }
        Object set = Class.forName("kafka.server.DynamicBrokerConfig").getMethod("AllDynamicConfigs").invoke(null);
        Object iterator = Class.forName("scala.collection.IterableOnce").getMethod("iterator").invoke(set);
        Class<?> iteratorType = Class.forName("scala.collection.Iterator");
        while ((Boolean) iteratorType.getMethod("hasNext").invoke(iterator))
            names.add(iteratorType.getMethod("next").invoke(iterator).toString());
        return names;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, String> topicSynonyms() {
        return (Map<String, String>) constant(
            "org.apache.kafka.server.config.ServerTopicConfigSynonyms", "TOPIC_CONFIG_SYNONYMS");
    }

    private static void print(String of, ConfigDef definition, Set<String> dynamic, Map<String, String> synonyms) throws Exception {
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
            if (key.internalConfig)
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

    private static Object inside(Object object, String field) throws Exception {
        try {
            Field found = object.getClass().getDeclaredField(field);
            found.setAccessible(true);
            return found.get(object);
        } catch (NoSuchFieldException absent) {
            return null;
        }
    }

    private static void check(ConfigDef.Validator validator, List<String> parts) throws Exception {
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
            parts.add("\"rule\":" + quote(said.isEmpty() || said.length() > 60 ? type : said));
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
            else if (letter < ' ')
                quoted.append(String.format("\\u%04x", (int) letter));
            else
                quoted.append(letter);
        }
        return quoted.append('"').toString();
    }
}
