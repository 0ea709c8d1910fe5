// SPDX-License-Identifier: Apache-2.0
#include "lab/rack.h"

#include "base/ids.h"
#include "base/io/crypto.h"
#include "base/io/http.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/lab.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"

#include <algorithm>
#include <set>

namespace muster::lab {

namespace {

constexpr std::size_t kMaxLabNameBytes = 24;
constexpr std::size_t kMaxSocketPathBytes = 107;  // sun_path
constexpr std::size_t kMaxDiskSerialBytes = 20;   // virtio-blk

std::string digestOf(std::string_view kind, std::string_view cluster, std::string_view node) {
  return io::sha256Hex(fmt::format("muster-lab {} {}/{}", kind, cluster, node));
}

Result<std::string> labName(const std::string& cluster) {
  bool usable = !cluster.empty() && cluster.size() <= kMaxLabNameBytes &&
                std::all_of(cluster.begin(), cluster.end(), [](char c) {
                  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
                });
  if (usable) return cluster;
  return fail(
      ErrorCode::InvalidInput,
      fmt::format(
          "the lab of cluster '{}' needs a cluster name of at most {} letters, digits, '-' and '_'",
          cluster, kMaxLabNameBytes));
}

Result<void> readBmcUrl(const inventory::Node& node, const Cidr& network, RackNode& out) {
  auto refuse = [&](std::string why) {
    return fail(
        Error(ErrorCode::InvalidInput, fmt::format("the lab cannot serve the BMC of {} at '{}': {}",
                                                   node.name.str(), node.bmc.url, why))
            .at(node.where));
  };
  auto url = io::Url::parse(node.bmc.url);
  if (!url) return refuse(url.error().text());
  auto address = Ipv4::parse(url->host);
  if (url->scheme != "https" || !address) return refuse("it must be https://IPV4");
  if (!network.contains(*address))
    return refuse(fmt::format("the address is not in the provisioning network {}", network.str()));
  out.bmc_address = *address;
  out.bmc_port = url->port;
  out.bmc_url = node.bmc.url;
  return {};
}

DomainSpec domainOf(const inventory::Cluster& cluster, const inventory::Node& node,
                    const Rack& rack, Accel accel) {
  const auto& name = node.name.str();
  DomainSpec spec;
  spec.name = name;
  spec.uuid = uuidOf(cluster.name, name);
  spec.serial = node.serial.empty() ? serialOf(cluster.name, name) : node.serial;
  spec.disk_serial = diskSerialOf(name);
  spec.mac = node.mac;
  spec.bridge = rack.bridge;
  spec.memory_mib = cluster.lab->memory_mib;
  spec.vcpus = cluster.lab->vcpus;
  spec.uefi = cluster.profileOf(node).boot == inventory::BootMode::Uefi;
  spec.arch = cluster.profileOf(node).arch;
  spec.accel = spec.arch == kBuiltFor ? accel : Accel::Tcg;
  spec.gpus = cluster.lab->gpus;
  spec.gpu_model = cluster.lab->gpu_model;
  spec.disk = rack.paths.disks / (name + ".raw");
  spec.nvram = rack.paths.libvirt() / "nvram" / (name + ".fd");
  spec.console_socket = rack.paths.console() / (name + ".sock");
  spec.console_log = rack.paths.console() / (name + ".log");
  return spec;
}

}  // namespace

std::string serialOf(std::string_view cluster, std::string_view node) {
  auto hex = digestOf("serial", cluster, node).substr(0, 10);
  std::transform(hex.begin(), hex.end(), hex.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return "MST" + hex;
}

std::string uuidOf(std::string_view cluster, std::string_view node) {
  auto hex = digestOf("uuid", cluster, node);
  hex[12] = '8';  // RFC 9562: version 8, made by the vendor's own rule
  hex[16] = 'a';
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20, 12));
}

std::string diskSerialOf(std::string_view node) {
  auto serial = fmt::format("muster-{}", node);
  if (serial.size() <= kMaxDiskSerialBytes) return serial;
  return "muster-" + digestOf("disk", "", node).substr(0, kMaxDiskSerialBytes - 7);
}

Result<Rack> planRack(const inventory::Cluster& cluster, Paths paths, Accel accel) {
  Rack rack;
  TRY(name, labName(cluster.name));
  rack.name = name;
  rack.netns = "muster-" + name;
  rack.network = cluster.provisioning().cidr;
  rack.controller = cluster.provisioning().controller;
  rack.paths = std::move(paths);
  rack.libvirt_uri =
      fmt::format("qemu+unix:///system?socket={}", rack.paths.libvirtSocket().string());
  if (rack.paths.libvirtSocket().string().size() > kMaxSocketPathBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("the lab's folder {} is too long for a socket in it",
                            rack.paths.root.string()));
  std::set<Ipv4> taken{rack.controller};
  for (const auto& node : cluster.nodes) {
    RackNode planned;
    TRY_OK(readBmcUrl(node, rack.network, planned));
    planned.domain = domainOf(cluster, node, rack, accel);
    planned.address = node.address;
    if (planned.domain.console_socket.string().size() > kMaxSocketPathBytes)
      return fail(ErrorCode::InvalidInput, fmt::format("the path {} is too long for a socket",
                                                       planned.domain.console_socket.string()));
    if (!taken.insert(planned.bmc_address).second)
      return fail(ErrorCode::InvalidInput, fmt::format("the BMC address {} of {} is used twice",
                                                       planned.bmc_address.str(), node.name.str()));
    rack.nodes.push_back(std::move(planned));
  }
  return rack;
}

}  // namespace muster::lab
