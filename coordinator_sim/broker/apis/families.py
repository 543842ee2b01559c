"""All API families that show or change the cluster's metadata."""

from coordinator_sim.broker.apis.acl_api import AclApi
from coordinator_sim.broker.apis.cluster_api import ClusterApi
from coordinator_sim.broker.apis.configs_api import ConfigsApi
from coordinator_sim.broker.apis.control_api import ControlApi
from coordinator_sim.broker.apis.features_api import FeaturesApi
from coordinator_sim.broker.apis.metadata_api import MetadataApi
from coordinator_sim.broker.apis.quotas_api import QuotasApi
from coordinator_sim.broker.apis.reassignment_api import ReassignmentApi
from coordinator_sim.broker.apis.scram_api import ScramApi
from coordinator_sim.broker.apis.topics_api import TopicsApi
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Family


def administration_apis(cluster: ClusterParts) -> tuple[Family, ...]:
    """The admin API families of one cluster."""
    return (
        MetadataApi(cluster),
        ClusterApi(cluster),
        ControlApi(cluster),
        TopicsApi(cluster),
        ReassignmentApi(cluster),
        ConfigsApi(cluster),
        QuotasApi(cluster),
        FeaturesApi(cluster),
        AclApi(cluster),
        ScramApi(cluster),
    )
