package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;

/** The settings, set by command; no bounds are looked at. */
abstract class Settings {
    Release.Letters letters;

    abstract void set(JsonNode settings) throws Exception;
}
