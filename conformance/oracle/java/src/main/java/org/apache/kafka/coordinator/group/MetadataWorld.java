package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

import oracle.VirtualWorld;

import java.util.List;

/** A world whose coordinator follows the cluster's metadata. */
abstract class MetadataWorld extends VirtualWorld {
    private MetadataImage image = MetadataImage.EMPTY;
    private long imageVersion;

    MetadataWorld(int partitions, long startMs) { super(partitions, startMs); }

    /** The metadata is new. */
    abstract void published(MetadataDelta d, MetadataImage image);

    MetadataImage image() { return image; }
    MetadataDelta delta() { return new MetadataDelta.Builder().setImage(image).build(); }

    void topic(MetadataDelta d, String name, Uuid id, int n, List<String> racks) {
        var existing = image.topics().getTopic(name);
        Uuid topicId = existing != null ? existing.id() : id;
        int from = existing != null ? existing.partitions().size() : 0;
        if (existing == null) d.replay(new TopicRecord().setName(name).setTopicId(topicId));
        for (int p = from; p < n; p++) {
            d.replay(new PartitionRecord().setTopicId(topicId).setPartitionId(p).setReplicas(List.of(1)).setIsr(List.of(1)).setLeader(1));
        }
    }

    void removeTopic(MetadataDelta d, String name) {
        var t = image.topics().getTopic(name);
        if (t != null) d.replay(new RemoveTopicRecord().setTopicId(t.id()));
    }

    void broker(MetadataDelta d, int id, String rack) { d.replay(new RegisterBrokerRecord().setBrokerId(id).setRack(rack)); }

    void publish(MetadataDelta d) {
        image = d.apply(new MetadataProvenance(++imageVersion, 0, clock.ms, true));
        published(d, image);
        drain();
    }

    Uuid topicId(String name) { var t = image.topics().getTopic(name); return t == null ? Uuid.ZERO_UUID : t.id(); }
    String topicName(Uuid id) { var t = image.topics().getTopic(id); return t == null ? null : t.name(); }
    boolean hasPartition(String topic, int p) { var t = image.topics().getTopic(topic); return t != null && t.partitions().containsKey(p); }
}
