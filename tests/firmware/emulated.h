// SPDX-License-Identifier: Apache-2.0
// One node with an emulated BMC of some vendor, and a controller that can die: the phase and the
// Redfish client, in virtual time.
#pragma once

#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/fwd.h"
#include "inventory/model/profile.h"
#include "tests/firmware/one_bmc.h"

#include <algorithm>

namespace muster::firmware {

class Emulated {
 public:
  Emulated(std::string_view vendor_profile, std::vector<std::string_view> only,
           lab::vbmc::Timings timings = {})
      : emulator(loop, vendor_profile, timings) {
    emulator.machine.on = true;
    auto& baseline = cluster.firmware["b"];
    baseline.name = "b";
    for (const auto& row : (*lab::vbmc::findVendorProfile(vendor_profile))->components) {
      const std::string name(row.name);
      if (!only.empty() && std::find(only.begin(), only.end(), row.name) == only.end()) continue;
      inventory::FirmwareComponent component{name, "99.1"};
      component.file = emulator.folder / (std::to_string(baseline.components.size()) + ".fw");
      const auto bytes = lab::vbmc::makeFirmware(name, component.version, 4096);
      if (!io::writeFileAtomic(component.file, bytes)) throw std::runtime_error("no file");
      component.sha256 = io::sha256Hex(bytes);
      component.activation =
          static_cast<inventory::FirmwareActivation>(1 + static_cast<int>(row.becomes));
      baseline.components.push_back(component);
      baseline.order.push_back(name);
    }
    inventory::Profile profile;
    profile.name = "p";
    profile.firmware = "b";
    cluster.profiles["p"] = profile;
    inventory::Node node;
    node.name = kNode;
    node.profile = "p";
    cluster.nodes.push_back(node);
    emulator.fetch = [this](std::string url) { return fetch(std::move(url)); };
    restart();
  }

  /// A new process of muster: what it knew of the BMC in memory is gone.
  void restart() {
    phase.reset();
    fleet = std::make_unique<OneBmc>(bmc::arbitrate(rig.bmc(), loop.clock));
    phase = makeFirmwarePhase(cluster, *fleet, loop.clock, loop.workers, "http://10.20.0.1:8080");
    routes = imageRoutes(cluster, loop.clock, loop.workers);
  }

  /// What the BMC gets from muster's own route.
  Async<std::string> fetch(std::string url) {
    ++fetches;
    before_fetch();
    io::ServerRequest request;
    request.target = io::Url::parse(url)->target;
    auto answer = co_await routes[0].handle(std::move(request));
    const auto* file = std::get_if<io::FileBody>(&answer.body);
    if (answer.status != 200 || !file)
      co_return fail(ErrorCode::Unavailable, fmt::format("the server answered {}", answer.status));
    co_return io::readFile(file->path);
  }

  /// As the engine: the plan's actions in order. Stops at the first that fails; says why.
  std::string apply() {
    auto observed = loop.run(phase->observe(lifecycle::Subject(kNode)));
    if (!observed) return observed.error().str();
    lifecycle::FactSet facts;
    for (auto& fact : *observed) facts.put(std::move(fact));
    for (const auto& fact : kept) facts.put(fact);
    journal.known = facts;
    for (const auto& goal : phase->goals(cluster, lifecycle::Subject(kNode), facts)) {
      if (lifecycle::matches(goal.want,
                             facts.value(goal.facet.subject, goal.facet.facet).value_or("")))
        continue;
      lifecycle::Action action;
      action.facet = goal.facet;
      action.to = goal.want;
      journal.operation_id.clear();
      if (auto why = drive(action); !why.empty()) return why;
      const auto after = loop.run(phase->verify(action));
      if (!after) return after.error().str();
      for (const auto& fact : *after) {
        if (fact.facet == action.facet.facet && !lifecycle::matches(action.to, fact.value))
          return "verified as " + fact.value;
        if (fact.facet.str().find("left") != std::string::npos)
          kept.push_back(fact), journal.known.put(fact);
      }
    }
    return {};
  }

  std::string drive(const lifecycle::Action& action) {
    int retries = 3;
    const auto until = loop.clock.steady() + std::chrono::minutes(90);
    while (loop.clock.steady() < until) {
      if (restart_every > 0 && ++calls % restart_every == 0) restart();
      auto outcome = loop.run(phase->act(action, journal));
      if (!outcome) {
        if (!outcome.error().canRetry() || --retries < 0) return outcome.error().str();
        pass(std::chrono::seconds(2));
      } else if (std::holds_alternative<lifecycle::Done>(*outcome)) {
        return {};
      } else if (auto* again = std::get_if<lifecycle::Again>(&*outcome)) {
        last_wait = again->waiting_for;
        pass(again->after);
      } else {
        return "blocked: " + std::get<lifecycle::Blocked>(*outcome).why;
      }
    }
    return "no end; last waited for " + last_wait;
  }

  void pass(std::chrono::milliseconds time) {
    auto sleep = [](Clock& clock, std::chrono::milliseconds time) -> Task<int> {
      co_await clock.sleep(time);
      co_return 0;
    };
    loop.run(sleep(loop.clock, time));
  }

  const lab::vbmc::BmcState& state() const { return emulator.service->state(); }
  void expectBaseline() {
    for (const auto& component : cluster.firmware["b"].components)
      EXPECT_EQ(state().slots.at(component.name).version, component.version) << component.name;
  }

  test::VirtualLoop loop;
  test::VirtualBmc emulator;
  test::RedfishRig rig{loop, emulator.net};
  inventory::Cluster cluster;
  std::unique_ptr<OneBmc> fleet;
  std::unique_ptr<lifecycle::Phase> phase;
  std::vector<io::Route> routes;
  std::function<void()> before_fetch = [] {};
  int fetches = 0;
  Journal journal;
  std::vector<lifecycle::Fact> kept;  ///< besides what is observed
  std::string last_wait;
  int restart_every = 0, calls = 0;
};

}  // namespace muster::firmware
