package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorService;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.server.util.timer.VirtualWheelTimer;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Map;
import java.util.OptionalInt;

/** One simulated broker: the real ShareCoordinatorService over virtual time, an in-memory log and a single thread. */
final class ShareWorld extends MetadataWorld {
    final VirtualWheelTimer timer;
    final World.Events events = new World.Events();
    final MemoryLog log;
    final ShareCoordinatorService service;
    private boolean isStarted;

    ShareWorld(Map<String, String> props, int partitions, long startMs, MemoryLog.Sink sink) throws Exception {
        super(partitions, startMs);
        timer = new VirtualWheelTimer(startMs, () -> clock.ms, Runnable::run);
        log = new MemoryLog(sink);
        ShareCoordinatorConfig config = new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, props));
        ShareCoordinatorMetrics metrics = new ShareCoordinatorMetrics(new Metrics(clock));
        CoordinatorRuntime<ShareCoordinatorShard, CoordinatorRecord> runtime = new CoordinatorRuntime.Builder<ShareCoordinatorShard, CoordinatorRecord>()
            .withTime(clock)
            .withTimer(timer)
            .withLogPrefix("oracle")
            .withEventProcessor(events)
            .withPartitionWriter(log)
            .withLoader(log.loader(clock, new ShareCoordinatorRecordSerde()))
            .withCoordinatorShardBuilderSupplier(() -> new ShareCoordinatorShard.Builder(config))
            .withWriteTimeout(Duration.ofMillis(config.shareCoordinatorWriteTimeoutMs()))
            .withCoordinatorRuntimeMetrics((CoordinatorRuntimeMetrics) Proxy.newProxyInstance(ShareWorld.class.getClassLoader(),
                new Class<?>[] {CoordinatorRuntimeMetrics.class}, (p, m, a) -> null))
            .withCoordinatorMetrics(metrics)
            .withSerializer(new ShareCoordinatorRecordSerde())
            .withCompression(Compression.of(config.shareCoordinatorStateTopicCompressionType()).build())
            .withAppendLingerMs(config.shareCoordinatorAppendLingerMs())
            .withExecutorService(new World.Background())
            .withCachedBufferMaxBytesSupplier(config::shareCoordinatorCachedBufferMaxBytes)
            .build();
        service = World.make(ShareCoordinatorService.class, config, runtime, metrics, clock, timer, log);
    }

    @Override public void drain() {
        do {
            events.drain();
            timer.runUntil(clock.ms, t -> clock.ms = t, events::drain);
        } while (!events.queue.isEmpty());
    }

    @Override public void advanceTo(long target) {
        drain();
        timer.runUntil(target, t -> clock.ms = t, this::drain);
        drain();
    }

    @Override public int partitionFor(String group) { throw new UnsupportedOperationException(); }

    @Override public void startup() {
        service.startup(() -> partitions);
        isStarted = true;
        publish(delta());
    }

    @Override public void shutdown() {
        isStarted = false;
        service.shutdown();
    }

    @Override public void elect(int partition, int epoch) { service.onElection(partition, epoch); drain(); }
    @Override public void resign(int partition, OptionalInt epoch) { service.onResignation(partition, epoch); drain(); }
    @Override void published(MetadataDelta d, MetadataImage image) { if (isStarted) service.onMetadataUpdate(d, image); }
}
