// SPDX-License-Identifier: Apache-2.0
#include "fabric/exports/render.h"

#include "fabric/exports/exports.h"
#include "fabric/exports/plot.h"
#include "fabric/opensm/subnet_manager.h"
#include "fabric/roce/roce.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"

#include <algorithm>

namespace muster::fabric {

namespace {

/// It never starts, and is never told to read again, without partitions: OpenSM would open the
/// fabric.
std::string unitFile(const inventory::Fabric& fabric) {
  return fmt::format(
      R"(# Written by muster from the inventory: a standby subnet manager of fabric {0}.
[Unit]
Description=OpenSM for fabric {0}
After=network.target
StartLimitIntervalSec=0

[Service]
Environment=OSM_CACHE_DIR={1} OSM_TMP_DIR={1}
ExecStartPre=/usr/bin/test -s {1}/partitions.conf
ExecStart=/usr/sbin/opensm -F {1}/opensm.conf
ExecReload=/usr/bin/test -s {1}/partitions.conf
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
)",
      fabric.name, kNodeOpensmFolder);
}

/// Ports of each switch that have a cable, as SONiC calls them where a port has four lanes.
std::map<std::string, std::vector<std::string>> cabledPorts(const Topology& declared) {
  constexpr int kLanes = 4;
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& link : declared.links)
    for (const auto& end : {link.a, link.b})
      if (declared.devices.at(end.node).is_switch)
        out[end.node].push_back(fmt::format("Ethernet{}", (end.number - 1) * kLanes));
  return out;
}

}  // namespace

Result<std::vector<RenderedFile>> renderManager(const inventory::Cluster& cluster,
                                                const inventory::Fabric& fabric,
                                                const Topology& declared, const KnownGuids& known,
                                                const std::string& manager,
                                                const std::string& guid2lid) {
  auto at = std::find(fabric.subnet_managers.begin(), fabric.subnet_managers.end(), manager);
  if (at == fabric.subnet_managers.end())
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("{} is not among the subnet_managers of fabric {}", manager, fabric.name));
  TRY(rules, declaredPartitions(cluster, fabric, declared));
  const auto rank = at - fabric.subnet_managers.begin();
  const auto hca = managerHcas(cluster, fabric).at(static_cast<std::size_t>(rank));
  auto guid = known.hcas.find(hca);
  if (guid == known.hcas.end())
    return fail(ErrorCode::Unavailable,
                fmt::format("{} was never seen at its declared port, so its GUID is not known: run "
                            "muster apply once its cable is right",
                            hca));
  auto files =
      renderSm(fabric, declared, rules, known,
               {guid->second, std::filesystem::path(kNodeOpensmFolder), static_cast<int>(rank)});
  TRY_OK(parsePartitions(files.partitions));
  const auto folder = fmt::format("opensm/{}/", manager);
  std::vector<RenderedFile> out = {{folder + "opensm.conf", std::move(files.opensm_conf)},
                                   {folder + "root_guids", std::move(files.root_guids)},
                                   {folder + "io_guids", std::move(files.io_guids)},
                                   {folder + "cn_guids", std::move(files.cn_guids)},
                                   {folder + "partitions.conf", std::move(files.partitions)},
                                   {folder + "muster-opensm.service", unitFile(fabric)}};
  if (!guid2lid.empty()) out.push_back({folder + "guid2lid", guid2lid});
  return out;
}

namespace {

/// Of one fabric: what its crew and its switches get.
std::vector<RenderedFile> fabricFiles(const inventory::Cluster& cluster,
                                      const inventory::Fabric& fabric, const Topology& declared,
                                      const std::string& folder) {
  auto places = placesOf(cluster, fabric, declared);
  std::vector<RenderedFile> out = {
      {folder + "cabling.csv", cablingCsv(declared, places)},
      {folder + "fabric.svg",
       plotSvg(fmt::format("{} – {}", cluster.name, fabric.name), declared, places)}};
  if (!fabric.roce) return out;
  for (const auto& [name, profile] : cluster.profiles)
    if (inventory::isOn(profile, fabric.name))
      out.push_back({fmt::format("{}roce/{}.sh", folder, name),
                     roceHostScript(*fabric.roce, rdmaDevices(profile, fabric))});
  out.push_back({folder + "roce/cumulus.txt", roceCumulus(*fabric.roce, NvueSince::Cumulus50)});
  out.push_back(
      {folder + "roce/cumulus-5.15.txt", roceCumulus(*fabric.roce, NvueSince::Cumulus515)});
  for (const auto& [name, ports] : cabledPorts(declared))
    for (const auto asic : kSonicAsics)
      out.push_back({folder + sonicFile(asic, name), roceSonic(*fabric.roce, ports, asic)});
  return out;
}

/// What jobs and their schedulers know: the compute fabrics.
std::vector<RenderedFile> schedulerFiles(const inventory::Cluster& cluster,
                                         const std::vector<ExpandedFabric>& fabrics) {
  std::vector<ExpandedFabric> compute;
  std::vector<const inventory::Fabric*> declared;
  for (const auto& one : fabrics)
    if (one.fabric->purpose == inventory::FabricPurpose::Compute) {
      compute.push_back(one);
      declared.push_back(one.fabric);
    }
  std::vector<RenderedFile> out;
  if (compute.empty()) return out;
  const auto tops = vicinitiesOf(cluster, compute);
  std::string labels;
  for (std::size_t i = 0; i < tops.size(); ++i) labels += kubernetesLabels(tops[i], *declared[i]);
  out = {{"slurm/topology.conf", slurmTree(tops)},
         {"slurm/topology-block.conf", slurmBlocks(tops, declared)},
         {"slurm/topology.yaml", slurmYaml(tops, declared)},
         {"kubernetes/node-labels.yaml", std::move(labels)}};
  for (const auto* fabric : declared)
    for (const auto& [name, profile] : cluster.profiles)
      if (profile.fabric == fabric->name)
        out.push_back({fmt::format("nccl/{}.env", name), ncclEnvironment(profile, *fabric)});
  return out;
}

}  // namespace

std::vector<RenderedFile> renderExports(const inventory::Cluster& cluster,
                                        const std::vector<ExpandedFabric>& fabrics) {
  std::vector<RenderedFile> out;
  const auto add = [&out](std::vector<RenderedFile> files) {
    out.insert(out.end(), std::make_move_iterator(files.begin()),
               std::make_move_iterator(files.end()));
  };
  for (const auto& one : fabrics)
    add(fabricFiles(cluster, *one.fabric, *one.declared, folderOf(*one.fabric, fabrics.size())));
  add(schedulerFiles(cluster, fabrics));
  return out;
}

std::string folderOf(const inventory::Fabric& fabric, std::size_t fabrics) {
  return fabrics > 1 ? fabric.name + "/" : std::string();
}

}  // namespace muster::fabric
