"""Every class of spec there is, by Java's name of it; importing this module makes all readable."""

from types import MappingProxyType
from typing import Final

from coordinator_sim.trogdor import workload_specs
from coordinator_sim.trogdor.fault_specs import (
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
)
from coordinator_sim.trogdor.specs import NoOpTaskSpec, SampleTaskSpec, TaskSpec

_CLASSES: Final[tuple[type[TaskSpec], ...]] = (
    NoOpTaskSpec,
    SampleTaskSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    workload_specs.ProduceBenchSpec,
    workload_specs.ConsumeBenchSpec,
    workload_specs.ShareConsumeBenchSpec,
    workload_specs.ConfigurableProducerSpec,
    workload_specs.RoundTripWorkloadSpec,
    workload_specs.ConnectionStressSpec,
    workload_specs.SustainedConnectionSpec,
    workload_specs.ExternalCommandSpec,
)

SPEC_CLASSES: Final = MappingProxyType({str(spec.__struct_config__.tag): spec for spec in _CLASSES})
"""Java's class name -> ours, of every spec that Kafka has."""
