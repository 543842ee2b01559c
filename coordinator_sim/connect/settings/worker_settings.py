"""Definitions of a distributed worker's settings, which are rows of `tables`.

Elsewhere: constraints between settings (`worker_config`).

Source: kafka trunk, connect/runtime/.../WorkerConfig.java, distributed/DistributedConfig.java,
rest/RestServerConfig.java, TopicCreationConfig.java.
"""

from typing import Final

from coordinator_sim.connect.settings.config_def import ConfigDef
from coordinator_sim.connect.settings.setting_rows import keys_in

WORKER_CONFIG_DEF: Final = ConfigDef(keys_in("worker"))
"""Every setting of a distributed worker except those of TLS and SASL."""
PASSED_ON_PREFIXES: Final = (
    "ssl.",
    "sasl.",
    "producer.",
    "consumer.",
    "admin.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "config.storage.",
    "offset.storage.",
    "status.storage.",
    "config.providers.",
    "connector.client.config.override.allowlist",
    "listeners.https.",
    "metrics.context.",
)
"""Settings that other components read; the worker itself does not define them one by one."""
