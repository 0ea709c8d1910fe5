// SPDX-License-Identifier: Apache-2.0
// Network boot: dnsmasq supervised, one iPXE script (or GRUB configuration) a node. They hold no
// secret: an enrollment id, which the controller believes only with what the network shows of the
// caller (gateway/enrollment_proof.h).
#pragma once

#include "base/async/task.h"
#include "base/ids.h"
#include "base/io/daemon_unit.h"
#include "base/io/http.h"
#include "base/io/process.h"
#include "base/result.h"
#include "gateway/gateway_server.h"
#include "inventory/model/fwd.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace muster::provision {

class ImageStore;

/// dnsmasq as it runs, on its way from one Netboot to the next one of this process.
struct RunningDnsmasq {
  std::unique_ptr<io::Child> child;
  std::string configuration;
};

class Netboot {
 public:
  virtual ~Netboot() = default;
  /// Renders dnsmasq's configuration and starts it (DHCP as the inventory says, TFTP with iPXE).
  /// Restarted when it dies.
  virtual Result<void> start() = 0;
  virtual void stop() = 0;
  /// As start, but with a dnsmasq that `release` gave away: it learns what is different and runs
  /// on. Where more than nodes has changed it is started anew.
  virtual Result<void> goOn(RunningDnsmasq) { return start(); }
  /// Nobody is armed any more; dnsmasq runs on. Empty when it does not run.
  virtual RunningDnsmasq release() { return {}; }
  /// From now on this node's boot script leads into the RAM OS with a fresh enrollment id, until
  /// `disarm` or until the arming has expired: a RAM OS with an id that is worth nothing would wait
  /// for ever. A node with Secure Boot finds it by TFTP as GRUB's configuration, in a folder that
  /// dnsmasq opens for its address only; kernel and initrds there are compared with their originals
  /// by digest. Errors: those of TftpFolder::arm too
  virtual Result<void> arm(const NodeName& node) = 0;
  virtual void disarm(const NodeName& node) = 0;
  /// Whether the node's profile wants a boot medium (boot_source: virtual-media).
  virtual bool usesMedium(const NodeName&) const { return false; }
  /// As arm, by a medium that the BMC reads: the same loaders, kernel and initrds for all nodes
  /// (boot_medium.h), with this node's parameters laid into it as it is sent. Answers the URLs
  /// under which it lies, the one that needs no trust first. Errors: those of BootMedia::make too
  virtual Async<std::vector<std::string>> armMedium(NodeName node);
  /// Whether an image of this URL is a boot medium of this site.
  virtual bool isOwnMedium(const std::string&) const { return false; }
  /// GET /media/ID/…: media of armed nodes. For plain HTTP and for HTTPS: BMCs read by one or the
  /// other.
  virtual std::vector<io::Route> mediumRoutes() { return {}; }
  /// GET /boot/ipxe?mac=…; every other machine, and every node not armed, is told to boot from its
  /// disk. GET /boot/ipxe.efi: iPXE for firmware that boots by HTTP.
  virtual std::vector<io::Route> routes() = 0;
  /// The inventory has other nodes now: dnsmasq learns of them as it runs, nobody waits for a
  /// restart. Nodes that are gone, or have another MAC or address, are disarmed. The cluster must
  /// outlive this object. Errors: Conflict (the provisioning network itself is another one: start
  /// anew)
  virtual Result<void> follow(const inventory::Cluster& cluster) = 0;
};

struct NetbootOptions {
  std::filesystem::path run_folder;  ///< configuration, leases, log
  std::uint16_t http_port = 8080;
  std::uint16_t https_port = 8443;
  std::string ca_fingerprint;          ///< pinned on the kernel command line
  std::filesystem::path hosts_folder;  ///< not below run_folder, which is closed: dnsmasq reads it
                                       ///< without root's rights
  std::filesystem::path tftp_folder;   ///< likewise
  std::filesystem::path media_folder = run_folder / "media";  ///< boot media
  Workers* workers = nullptr;  ///< who makes boot media; nullptr: the caller's own thread. They
                               ///< outlive this
  /// Who runs dnsmasq where this process does not: then leases and configuration are in the unit's
  /// folder, and dnsmasq ends with its connection.
  std::optional<io::DaemonUnit> dnsmasq_unit = std::nullopt;
  std::chrono::milliseconds look_for_old{
      10'000};  ///< how often folders of nodes that did not come are looked for
  std::function<std::chrono::steady_clock::time_point()> steady = std::chrono::steady_clock::now;
  /// After its arming a node may start into the RAM OS for so long.
  std::function<std::chrono::milliseconds()> window = [] {
    return std::chrono::milliseconds(gateway::kEnrollmentWindow);
  };
  /// Whether a process before this one has started the machine into the RAM OS, and it has not come
  /// yet: what that process had armed is lost with it, so it is armed anew when it asks. Never
  /// while it has its script already: then what that one holds must stay good.
  std::function<bool(const NodeName&)> is_on_its_way = [](const NodeName&) { return false; };
};
/// Of the dnsmasq that netboot runs in this folder, also when its muster was killed.
inline std::filesystem::path dnsmasqLeaseFile(const std::filesystem::path& run_folder) {
  return run_folder / "dnsmasq.leases";
}
/// Likewise.
inline constexpr const char* kDnsmasqConf = "dnsmasq.conf";
inline std::filesystem::path dnsmasqPidFile(const std::filesystem::path& run_folder) {
  return run_folder / "dnsmasq.pid";
}

std::unique_ptr<Netboot> makeNetboot(const inventory::Cluster& cluster, const ImageStore& images,
                                     gateway::GatewayServer& gateway, io::ProcessRunner& processes,
                                     asio::any_io_executor executor, NetbootOptions options);

}  // namespace muster::provision
