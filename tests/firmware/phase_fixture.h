// SPDX-License-Identifier: Apache-2.0
// The firmware phase on a fake BMC, driven as the engine does: act until Done, the operation
// journaled, a new phase after a crash.
#pragma once

#include "base/ids.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/result.h"
#include "firmware/firmware.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/fwd.h"
#include "inventory/model/profile.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gtest/gtest.h>

namespace muster::firmware {

inline const NodeName kNode("gpu001");

/// What the engine keeps of one intent. It outlives the phase, as the store does.
class Journal final : public lifecycle::ActContext {
 public:
  const std::string& intentId() const override { return id; }
  std::string operation() const override { return operation_id; }
  Async<void> recordOperation(std::string value) override {
    operation_id = std::move(value);
    if (!crash_at.empty() && operation_id.find(crash_at) != std::string::npos)
      throw test::FakeCrash{"recordOperation"};
    if (crash_after_record && --*crash_after_record == 0) throw test::FakeCrash{"recordOperation"};
    co_return Result<void>();
  }
  bool wipeAllowed() const override { return false; }
  void progress(double, std::string_view text) override { said.emplace_back(text); }
  void finding(lifecycle::Finding finding) override { findings.push_back(std::move(finding)); }
  const lifecycle::FactSet& facts() const override { return known; }

  std::string id = "intent-1";
  std::string operation_id;
  std::string crash_at;                   ///< once something with these words is committed
  std::optional<int> crash_after_record;  ///< the n-th record is committed, then muster dies
  std::vector<std::string> said;
  std::vector<lifecycle::Finding> findings;
  lifecycle::FactSet known;
};

class FirmwarePhaseTest : public testing::Test {
 protected:
  FirmwarePhaseTest() {
    bmc.components["BMC"] = {.version = "2.0.0", .activates = test::FakeBmc::Activates::BmcReset};
    bmc.components["BIOS"] = {.version = "1.4.0",
                              .activates = test::FakeBmc::Activates::PowerCycle};
    inventory::FirmwareBaseline baseline{"rack-1", {}, {"BMC", "BIOS"}};
    baseline.components.push_back(component("BIOS", "1.4.2"));
    baseline.components.push_back(component("BMC", "2.1.0"));
    cluster.firmware["rack-1"] = baseline;
    inventory::Profile profile;
    profile.name = "gpu-node";
    profile.firmware = "rack-1";
    cluster.profiles["gpu-node"] = profile;
    inventory::Node node;
    node.name = kNode;
    node.profile = "gpu-node";
    cluster.nodes.push_back(node);
    restart();
  }

  inventory::FirmwareComponent component(const std::string& name, const std::string& version) {
    const std::string content =
        R"({"component":")" + name + R"(","version":")" + version + "\"}\npayload";
    const auto file = folder / (name + ".fw");
    EXPECT_TRUE(io::writeFileAtomic(file, content));
    return {name, version, file, io::sha256Hex(content)};
  }
  void restart() { phase = makeFirmwarePhase(cluster, fleet, loop.clock, loop.workers); }

  lifecycle::Action action(const std::string& name, const std::string& to) {
    lifecycle::Action a;
    a.id = "gpu001/firmware." + name;
    a.facet = {lifecycle::Subject(kNode), FacetName("firmware." + name)};
    a.phase = "firmware";
    a.to = to;
    return a;
  }

  /// One engine: act until Done, waiting as asked. Errors that can be retried are, three times.
  Result<void> drive(lifecycle::Action a) {
    int retries = 3;
    for (int call = 0; call < 2000; ++call) {
      auto outcome = loop.run(phase->act(a, journal));
      if (!outcome) {
        if (!outcome.error().canRetry() || --retries < 0) return fail(outcome.error());
      } else if (std::holds_alternative<lifecycle::Done>(*outcome)) {
        return {};
      } else if (auto* again = std::get_if<lifecycle::Again>(&*outcome)) {
        EXPECT_FALSE(again->waiting_for.empty());
        loop.clock.advance(again->after);
      } else {
        return fail(ErrorCode::Conflict, "blocked: " + std::get<lifecycle::Blocked>(*outcome).why);
      }
    }
    return fail(ErrorCode::Timeout, "act never ends");
  }
  /// As drive; a crash makes a new phase on the same journal and BMC.
  Result<void> driveThroughCrashes(lifecycle::Action a) {
    for (int crashes = 0; crashes < 5; ++crashes) {
      try {
        return drive(a);
      } catch (const test::FakeCrash&) {
        ++crashed;
        restart();
      }
    }
    return fail(ErrorCode::Internal, "crashes without end");
  }

  test::TempFolder folder;
  test::VirtualLoop loop;
  test::FakeBmcFleet fleet;
  test::FakeBmc& bmc = fleet.fake(kNode);
  inventory::Cluster cluster;
  Journal journal;
  std::unique_ptr<lifecycle::Phase> phase;
  int crashed = 0;
};

}  // namespace muster::firmware
