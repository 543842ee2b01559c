"""All API families that show or change the cluster's metadata."""

from coordinator_sim.mini_broker.acl_api import AclApi
from coordinator_sim.mini_broker.administration import Administration
from coordinator_sim.mini_broker.cluster_api import ClusterApi
from coordinator_sim.mini_broker.configs_api import ConfigsApi
from coordinator_sim.mini_broker.contract import Family
from coordinator_sim.mini_broker.features_api import FeaturesApi
from coordinator_sim.mini_broker.metadata_api import MetadataApi
from coordinator_sim.mini_broker.new_groups_api import NewGroupsApi
from coordinator_sim.mini_broker.quotas_api import QuotasApi
from coordinator_sim.mini_broker.reassignment_api import ReassignmentApi
from coordinator_sim.mini_broker.scram_api import ScramApi
from coordinator_sim.mini_broker.topics_api import TopicsApi


def administration_apis(admin: Administration) -> tuple[Family, ...]:
    """The admin API families of one cluster."""
    return (
        MetadataApi(admin),
        ClusterApi(admin),
        TopicsApi(admin),
        ReassignmentApi(admin),
        ConfigsApi(admin),
        QuotasApi(admin),
        FeaturesApi(admin),
        AclApi(admin),
        ScramApi(admin),
        NewGroupsApi(),
    )
