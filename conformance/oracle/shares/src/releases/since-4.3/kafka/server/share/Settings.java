package kafka.server.share;

import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfigProvider;

import com.fasterxml.jackson.databind.JsonNode;

/** The settings of the one group, set by command; no bounds are looked at. */
class Settings extends ShareGroupConfigProvider {
    Release.Letters letters;
    private JsonNode now;

    Settings() { super(null); }

    void set(JsonNode settings) { now = settings; }

    @Override public int recordLockDurationMsOrDefault(String groupId, int otherwise) { return now.get("lockMs").asInt(); }
    @Override public int deliveryCountLimitOrDefault(String groupId, int otherwise) { return now.get("deliveries").asInt(); }
    @Override public int partitionMaxRecordLocksOrDefault(String groupId, int otherwise) { return now.get("locks").asInt(); }
    @Override public boolean isRenewAcknowledgeEnabled(String groupId) { return now.get("renews").asBoolean(); }
}
