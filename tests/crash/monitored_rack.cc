// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/monitored_rack.h"

#include "monitor/health_phase.h"
#include "monitor/monitor.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace muster::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kQuiet = 180s;  ///< what would be done twice is done within it: looks are 20 s apart
constexpr auto kPatience = 12h;

Task<bool> waitFor(SimulatedRack& rack, std::function<bool()> until) {
  const auto end = rack.clock.steady() + kPatience;
  auto since = rack.clock.steady();
  while (rack.clock.steady() < end) {
    if (!until()) since = rack.clock.steady();
    if (rack.clock.steady() - since >= kQuiet) co_return true;
    co_await rack.clock.sleep(1s);
  }
  co_return false;
}

Async<lifecycle::ApplyReport> keepUntil(SimulatedRack& rack, lifecycle::EffectiveCluster& live,
                                        lifecycle::Store& store, lifecycle::Phases phases,
                                        std::function<bool()> until) {
  using namespace asio::experimental::awaitable_operators;
  const auto health = monitor::makeHealthPhase(live.cluster(), rack.agents, store, rack.wall);
  const auto steps = monitor::makeRecoverySteps(rack.bmcs, rack.wall);
  auto all = phases;
  all.insert(all.end() - 1, {health.get(), steps.get()});  // the pool comes last
  lifecycle::Phases light{health.get()};
  for (auto* phase : phases)
    if (phase->name() == "validate" || phase->name() == "pool") light.push_back(phase);
  std::string trouble;
  auto hear = [&trouble](const lifecycle::Event& event) {
    if (event.kind == lifecycle::EventKind::Note && event.text.starts_with("the monitor could not"))
      trouble += event.text + "\n";
  };
  monitor::Monitor monitor({live.cluster(), all, light, store, rack.wall, hear, {}, steps.get()});
  auto work = monitor.run();
  auto end = waitFor(rack, std::move(until));
  const auto first = co_await (std::move(work) || std::move(end));
  lifecycle::ApplyReport report;
  report.failed = !std::get<1>(first);
  if (report.failed) report.problems.push_back("it has not come to its end within hours");
  if (!trouble.empty()) report.problems.push_back(trouble);
  co_return report;
}

}  // namespace

LifeEnd keep(SimulatedRack& rack, lifecycle::Store& store, Death death,
             std::function<bool()> until) {
  return live(rack, store, death,
              [&rack, until](auto& cluster, auto&, auto& durable, const auto& phases) {
                return keepUntil(rack, cluster, durable, phases, until);
              });
}

}  // namespace muster::test
