// SPDX-License-Identifier: Apache-2.0
// InBand: a node's BMC, and beside it what only the node's own agent reaches, as one Bmc. So NICs,
// NVMe drives and fwupd's devices are components like any other: same baseline, same solver and
// waves, same lock, journal and confirmation by inventory.
//
// A task's URI is "agent:INTENT/COMPONENT=VERSION", the agent task's id behind "agent:". It follows
// from the intent alone, so a process that lost the answer finds it again, and the same order twice
// is one task.
#pragma once

#include "bmc/composite_bmc.h"
#include "gateway/agent_gateway.h"
#include "inventory/model/firmware.h"
#include "inventory/model/in_band.h"
#include "wire/device_firmware.h"

#include <string>

namespace muster::firmware {

inline constexpr std::string_view kAgentTask = "agent:";

/// Whether any component goes by the agent.
bool hasInBand(const inventory::FirmwareBaseline& baseline);

/// The components of a baseline as the agent sees them. Several devices of one component show the
/// version of one that is not at its baseline yet; a component none of whose devices can be read is
/// unreadable, with the reason.
std::vector<bmc::FirmwareItem> inBandItems(const inventory::FirmwareBaseline& baseline,
                                           const Result<wire::DeviceFirmware>& seen);

/// Asks the agent. Errors: Unavailable (it does not answer), and its own
Async<wire::DeviceFirmware> listInBand(gateway::AgentGateway& agents, Clock& clock, NodeName node,
                                       const inventory::FirmwareBaseline& baseline);

class InBand final : public bmc::ForwardingBmc {
 public:
  struct Context {
    NodeName node;
    std::string intent;
    std::string image_url;  ///< see makeFirmwarePhase
    std::string current =
        {};  ///< component whose upload may have been lost; "" when it goes by the BMC
  };
  /// Everything referred to outlives it.
  InBand(bmc::Bmc& bmc, gateway::AgentGateway& agents, Clock& clock,
         const inventory::FirmwareBaseline& baseline, Context scope)
      : ForwardingBmc(bmc),
        agents_(agents),
        clock_(clock),
        baseline_(baseline),
        scope_(std::move(scope)) {}

  Async<std::vector<bmc::FirmwareItem>> firmware() override;
  Async<std::string> startUpdate(bmc::FirmwareUpdate update) override;
  Async<bmc::TaskStatus> task(std::string uri) override;
  Async<bmc::TaskList> tasks() override;
  Async<void> commitImage(std::string component) override;
  Async<std::string> previousImage(std::string component) override;

 private:
  struct Order {
    const inventory::FirmwareComponent* component = nullptr;
    inventory::FirmwareImageFile image;
    std::string id;
  };
  std::vector<Order> orders() const;
  Result<void> submit(const Order& order);

  gateway::AgentGateway& agents_;
  Clock& clock_;
  const inventory::FirmwareBaseline& baseline_;
  Context scope_;
};

}  // namespace muster::firmware
