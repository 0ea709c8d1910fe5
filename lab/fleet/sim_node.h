// SPDX-License-Identifier: Apache-2.0
// A simulated node: a real Redfish service on an address of its own, a machine that only takes time
// to boot, an agent in it.
#pragma once

#include "base/io/server_tls.h"
#include "lab/fleet/sim_agent.h"
#include "lab/vbmc/redfish_service.h"

namespace muster::lab::fleet {

struct NodeSpec {
  std::string name;
  std::string serial;
  std::string mac;
  std::string bmc_address;
  std::uint16_t bmc_port = 8443;  ///< 0: any that is free
};

struct World {
  asio::any_io_executor executor;
  Clock& clock;
  Workers& workers;
  Conditions conditions;
  std::string boot_url;  ///< of the controller, or of several between commas: GET /boot/ipxe?mac=…
  vbmc::Account account;
  const vbmc::VendorProfile* vendor_profile = &vbmc::vendorProfiles().front();
  std::function<void(const std::string& node, const wire::AgentTask&, wire::TaskPhase)> tell =
      {};  ///< as TellTask
  /// Hears each switch of a node's power: its name, how many there were of it, on or off.
  std::function<void(const std::string& node, std::uint64_t number, bool on)> tell_power = {};
};

class SimNode final : public vbmc::Machine {
 public:
  /// Its BMC answers when this returns. Errors: Conflict (the address is in use)
  static Result<std::unique_ptr<SimNode>> make(const World& world, NodeSpec spec);
  ~SimNode() override;

  std::uint16_t bmcPort() const { return listener_.port; }
  Async<bool> isOn() override { co_return on_; }
  Async<void> start(vbmc::StartOptions options) override;
  Async<void> stop() override;
  Async<void> pressButton() override { return stop(); }
  Async<void> emptyDrive() override { co_return Result<void>(); }

 private:
  SimNode(const World& world, NodeSpec spec);
  Result<void> listen();
  std::vector<io::Route> routes();
  Task<io::ServerResponse> answer(io::ServerRequest request);
  Task<void> boot(std::uint64_t boot, bool from_network);
  Async<SimBoot> netboot();
  Async<SimBoot> netbootFrom(std::string controller);
  wire::Hardware hardware() const;

  const World& world_;
  const NodeSpec spec_;
  Random random_;
  io::ServerOptions listener_;
  std::shared_ptr<asio::ssl::context>
      tls_;  ///< of the BMC; it forgets its sessions when it restarts
  std::unique_ptr<vbmc::RedfishService> service_;
  std::unique_ptr<io::HttpServer> server_;
  bool on_ = false;
  std::uint64_t boots_ = 0, switches_ = 0;
  SimDisk disk_;
  std::shared_ptr<SimAgent> agent_;
};

}  // namespace muster::lab::fleet
