"""Every class of spec there is, by Java's name of it; importing this module makes all readable."""

from types import MappingProxyType
from typing import Final

from coordinator_sim.trogdor.fault_specs import (
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
)
from coordinator_sim.trogdor.specs import NoOpTaskSpec, SampleTaskSpec, TaskSpec
from coordinator_sim.trogdor.workload_specs import (
    ConfigurableProducerSpec,
    ConnectionStressSpec,
    ConsumeBenchSpec,
    ExternalCommandSpec,
    ProduceBenchSpec,
    RoundTripWorkloadSpec,
    ShareConsumeBenchSpec,
    SustainedConnectionSpec,
)

_CLASSES: Final[tuple[type[TaskSpec], ...]] = (
    NoOpTaskSpec,
    SampleTaskSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    ProduceBenchSpec,
    ConsumeBenchSpec,
    ShareConsumeBenchSpec,
    ConfigurableProducerSpec,
    RoundTripWorkloadSpec,
    ConnectionStressSpec,
    SustainedConnectionSpec,
    ExternalCommandSpec,
)

SPEC_CLASSES: Final = MappingProxyType({str(spec.__struct_config__.tag): spec for spec in _CLASSES})
"""Java's class name -> ours, of every spec that Kafka has."""
