// SPDX-License-Identifier: Apache-2.0
// slurm.conf of the twin: one controller in the namespace, every node DOWN until a phase resumes
// it.
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lab/rack.h"

#include <map>

namespace muster::lab {

namespace {

/// A guest's kernel keeps some memory; a node that reports less than the configuration is drained
/// by slurmctld.
constexpr int kUsableMemoryPercent = 75;
constexpr int kSlurmctldPort = 6817;
constexpr int kSlurmdPort = 6818;

std::string common(const inventory::Cluster& cluster, const Rack& rack) {
  return fmt::format(R"(ClusterName={}
SlurmctldHost=muster-controller({})
SlurmctldPort={}
SlurmdPort={}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=0
SlurmctldTimeout=30
SlurmdTimeout=60
InactiveLimit=0
DebugFlags=NO_CONF_HASH
SlurmdPidFile=/run/slurmd.pid
SlurmdSpoolDir=/var/spool/slurmd
SlurmdLogFile=/var/log/slurmd.log
)",
                     cluster.name, rack.controller.str(), kSlurmctldPort, kSlurmdPort);
}

std::string controllerOnly(const Rack& rack) {
  return fmt::format(
      R"(AuthInfo=socket={}
StateSaveLocation={}
SlurmctldPidFile={}
SlurmctldLogFile={}
SlurmctldDebug=info
)",
      (rack.paths.munge() / "munge.socket").string(), (rack.paths.slurm() / "state").string(),
      (rack.paths.slurm() / "slurmctld.pid").string(), rack.paths.log("slurmctld").string());
}

}  // namespace

std::string slurmConf(const inventory::Cluster& cluster, const Rack& rack, bool controller_side) {
  auto conf = common(cluster, rack);
  if (controller_side) conf += controllerOnly(rack);
  std::map<std::string, std::string> partitions;
  std::string all;
  for (std::size_t index = 0; index < rack.nodes.size(); ++index) {
    const auto& domain = rack.nodes[index].domain;
    conf += fmt::format("NodeName={} NodeAddr={} CPUs={} RealMemory={} State=DOWN\n", domain.name,
                        rack.nodes[index].address.str(), domain.vcpus,
                        domain.memory_mib * kUsableMemoryPercent / 100);
    all += (all.empty() ? "" : ",") + domain.name;
    auto pool = cluster.pools.find(cluster.profileOf(cluster.nodes[index]).pool);
    if (pool == cluster.pools.end() || !pool->second.slurm) continue;
    auto& members = partitions[pool->second.slurm->partition];
    members += (members.empty() ? "" : ",") + domain.name;
  }
  // A rack of which no node is for Slurm: slurmctld does not start without a partition.
  if (partitions.empty()) partitions.emplace("all", all);
  for (const auto& [partition, members] : partitions)
    conf += fmt::format("PartitionName={} Nodes={} Default={} MaxTime=INFINITE State=UP\n",
                        partition, members, partition == partitions.begin()->first ? "YES" : "NO");
  return conf;
}

}  // namespace muster::lab
