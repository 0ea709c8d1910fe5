// SPDX-License-Identifier: Apache-2.0
// A RedfishSession or RedfishBmc on a FakeHttp.
#pragma once

#include "bmc/redfish/redfish_bmc.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/profile.h"
#include "tests/bmc/values_store.h"
#include "tests/fakes/fake_http.h"
#include "tests/virtual_loop.h"

namespace muster::test {

struct RedfishRig {
  VirtualLoop& loop;
  FakeHttp& net;
  ValuesStore store;
  std::string password = "right";
  std::string next_password;  ///< "": none is declared
  inventory::BmcTrust declared;
  inventory::BmcTrustPolicy policy = inventory::BmcTrustPolicy::FirstContact;
  bmc::RecentReads* recent = nullptr;
  bmc::FirmwareImages images{loop.workers};

  RedfishRig(VirtualLoop& l, FakeHttp& n) : loop(l), net(n) {}

  /// A new process on the same store.
  std::unique_ptr<bmc::RedfishSession> session() {
    bmc::RedfishSession::Options options;
    options.node = NodeName("gpu001");
    options.base_url = "https://10.20.250.1";
    options.username = "admin";
    options.declared = declared;
    options.policy = policy;
    options.recent = recent;
    options.password = [this]() -> Result<Secret> { return Secret(password); };
    if (!next_password.empty())
      options.next_password = [this]() -> Result<Secret> { return Secret(next_password); };
    return std::make_unique<bmc::RedfishSession>(std::move(options), store, loop.clock,
                                                 net.factory());
  }
  std::unique_ptr<bmc::RedfishBmc> bmc(inventory::BootMode mode = inventory::BootMode::Uefi) {
    return std::make_unique<bmc::RedfishBmc>(session(), mode, loop.clock, images);
  }
};

}  // namespace muster::test
