// SPDX-License-Identifier: Apache-2.0
// Facade of provision/: the phase that enrolls, inspects, images, configures and installs drivers.
#pragma once

#include "bmc/bmc.h"
#include "gateway/agent_gateway.h"
#include "lifecycle/model/consoles.h"
#include "lifecycle/model/phase.h"
#include "provision/netboot/netboot.h"
#include "provision/storage/data_wipe.h"
#include "provision/storage/erase.h"

#include <functional>
#include <memory>

namespace muster::provision {

class ImageStore;
class BootLog;
class PeerService;

struct ProvisionDeps {
  const inventory::Cluster& cluster;
  bmc::BmcFleet& bmcs;
  gateway::AgentGateway& agents;
  ImageStore& images;
  Netboot& netboot;
  Clock& clock;
  std::string controller_http_url;   ///< "http://10.20.0.1:8080": images
  std::string controller_https_url;  ///< "https://10.20.0.1:8443": where installed agents fetch
                                     ///< drivers from
  std::string agent_ca_pem;          ///< what they trust there
  std::string signing_public_pem;    ///< whose signature on an image's index counts
  PeerService* peers = nullptr;      ///< nullptr: every node fetches its image by HTTP alone
  std::function<void(const NodeName&)> boot_ended = [](const NodeName&) {
  };  ///< the system that was started has called, or is given up
  /// Uses up the node's permission to empty its data disks, if there is one (data_wipe.h).
  std::function<Result<bool>(const NodeName&, const DataWipeOrder&)> take_data_wipe =
      [](const NodeName&, const DataWipeOrder&) { return Result<bool>(false); };
  std::function<Result<void>(const NodeName&, const std::string& intent)> end_data_wipe =
      [](const NodeName&, const std::string&) { return Result<void>(); };
  lifecycle::RestartCallback on_restart = {};  ///< an installed system restarts itself
  std::vector<std::string> standby_urls =
      {};  ///< "http://10.20.0.2:8080": of the other controllers, who have the images as soon as
           ///< they serve
  std::string agent_urls =
      {};  ///< where installed agents call, of several controllers; empty: controller_https_url
  BootLog* boots = nullptr;  ///< what a controller before this one has begun
};
std::unique_ptr<lifecycle::Phase> makeProvisionPhase(ProvisionDeps deps);

/// Erases disks that a person asked for.
std::unique_ptr<Erasures> makeErasePhase(ProvisionDeps deps, lifecycle::Store& store);

/// Mounts what profiles name under `storage`, and watches it.
std::unique_ptr<lifecycle::Phase> makeStoragePhase(const inventory::Cluster& cluster,
                                                   gateway::AgentGateway& agents, Clock& clock);

/// GET /repo/DRIVER/…: the apt repositories that drivers name. For the HTTPS listener only: nodes
/// install from them as root, and nothing but the connection vouches for what they get.
std::vector<io::Route> driverRepositoryRoutes(const inventory::Cluster& cluster);

}  // namespace muster::provision
