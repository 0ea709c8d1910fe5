// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/real_rollout.h"

#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/overlay.h"
#include "lifecycle/rollout/runner.h"

namespace muster::test {

using lifecycle::RolloutDirection;
using lifecycle::RolloutNodeState;
using lifecycle::RolloutRecord;
using lifecycle::RolloutState;

namespace {

/// The simulated gates measure nothing.
constexpr const char* kPolicy = "regression: {on_inconclusive: continue}";

}  // namespace

std::string toDriver45() {
  return fmt::format(
      "drivers: {{rdma-45: {{packages: [rdma-core=45.0], verify: {{package.rdma-core: "
      "\"45.0\"}}}}}}\n"
      "profiles: {{gpu-node: {{drivers: [rdma-45]}}}}\nrollout: {{{}}}\n",
      kPolicy);
}

std::string toBios150(SimulatedRack& rack, const std::string& policy) {
  rack.declare("1.5.0", "44.0");  // writes the file
  const auto bios = rack.cluster.firmware.at("base").components;
  rack.declare("1.4.2", "44.0");
  std::string components;
  for (const auto& component : bios)
    components += fmt::format("{}{}: {{version: {}, file: {}, sha256: {}}}",
                              components.empty() ? "" : ", ", component.name, component.version,
                              component.file.filename().string(), component.sha256);
  return fmt::format(
      "firmware: {{new: {{components: {{{}}}, order: [BMC, BIOS]}}}}\nprofiles: {{gpu-node: "
      "{{firmware: new}}}}\nrollout: {{{}{}}}\n",
      components, policy.empty() ? "" : policy + ", ", kPolicy);
}

namespace {

Async<lifecycle::ApplyReport> rollOut(SimulatedRack& rack, lifecycle::EffectiveCluster& live,
                                      lifecycle::Engine& engine, lifecycle::Store& store,
                                      lifecycle::Phases phases, std::string change,
                                      RolloutDirection direction) {
  std::optional<RolloutRecord> book;
  if (change.empty()) {
    CO_TRY(known, RolloutRecord::newest(store));
    book.emplace(std::move(known));
    if (direction == RolloutDirection::Forward) {
      CO_TRY(goes_on, lifecycle::prepareResume(*book, ""));
      direction = goes_on;
    }
  } else {
    lifecycle::RolloutRequest request;
    request.id = "r1";
    request.at = rack.wall.now();
    request.change_text = change;
    request.change_file = (rack.folder / "change.yaml").string();
    auto loaded = inventory::loadChangeText(change, request.change_file, live.cluster());
    if (!loaded.change)
      co_return fail(ErrorCode::InvalidInput, loaded.diagnostics.all().front().str());
    request.policy = loaded.change->policy;
    live.add("r1", *loaded.change);
    for (const auto& [node, machine] : rack.machines) request.nodes.push_back(node);
    CO_TRY(facts, co_await engine.observe({}));
    CO_TRY(frozen, lifecycle::freezeRollout(live, phases, store, facts, std::move(request)));
    book.emplace(std::move(frozen));
  }
  lifecycle::RolloutRunner runner({live, engine, phases, store, rack.wall, nullptr, nullptr},
                                  *book);
  CO_TRY_OK(co_await runner.run(direction));
  lifecycle::ApplyReport report;
  const auto state = book->rollout().state;
  const bool at_the_end = state == RolloutState::RolledBack ||
                          (state == RolloutState::Done && direction == RolloutDirection::Forward);
  report.failed = !at_the_end || book->count(RolloutNodeState::RollbackFailed) > 0;
  report.problems = book->rollout().reasons;
  co_return report;
}

}  // namespace

LifeEnd rollOut(SimulatedRack& rack, lifecycle::Store& store, const std::string& change,
                RolloutDirection direction, Death death) {
  return live(
      rack, store, death,
      [&rack, change, direction](auto& cluster, auto& engine, auto& durable, const auto& phases) {
        return rollOut(rack, cluster, engine, durable, phases, change, direction);
      });
}

}  // namespace muster::test
