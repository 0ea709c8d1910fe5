// SPDX-License-Identifier: Apache-2.0
#include "provision/node_reader.h"

#include "base/async/deadline.h"
#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/fact_source.h"
#include "provision/agent_task.h"
#include "provision/drivers/os_files.h"
#include "provision/facets.h"
#include "wire/task_params.h"

#include <nlohmann/json.hpp>

namespace muster::provision {

using gateway::AgentState;
using lifecycle::Fact;
using lifecycle::Subject;
using std::chrono::seconds;
using wire::Mode;
using wire::TaskKind;

namespace {

constexpr seconds kBmcLimit{40}, kProbeLimit{30}, kInspectLimit{75};

}  // namespace

Fact NodeReader::fact(const NodeName& node, std::string_view name, std::string value,
                      std::string source, std::string evidence) const {
  return {Subject(node),     facet(name),       std::move(value),
          deps_.clock.now(), std::move(source), std::move(evidence)};
}

InspectionContext NodeReader::contextOf(const inventory::Node& node) const {
  if (!identity_index_ || !identity_index_->isOf(deps_.cluster.nodes))
    identity_index_.emplace(deps_.cluster.nodes);
  return {.nodes = &deps_.cluster.nodes,
          .identity_index = &*identity_index_,
          .listened = false,
          .diskless = deps_.cluster.isLive(deps_.cluster.profileOf(node))};
}

Async<bmc::SystemInfo> NodeReader::bmc(NodeName node) const {
  auto read = deps_.bmcs.at(node).system();
  co_return co_await withDeadline<bmc::SystemInfo>(deps_.clock, kBmcLimit,
                                                   "the BMC of " + node.str(), std::move(read));
}

Fact NodeReader::enrolledFact(const inventory::Node& node, const bmc::SystemInfo& system) const {
  const auto value = identityOf(node, system);
  return fact(node.name, kEnrolled, value, "bmc " + deps_.bmcs.at(node.name).address(),
              jsonText(identityEvidence(system)));
}

void NodeReader::addAgentFacts(const inventory::Node& node, const AgentState& state,
                               std::vector<Fact>& facts) const {
  const auto source = lifecycle::agentSource(Subject(node.name));
  const auto& profile = deps_.cluster.profileOf(node);
  const auto& hardware = state.hardware;
  const bool known = hardware.cpus > 0;
  if (known) {
    const auto inspection = inspect(node, profile, hardware, contextOf(node));
    const nlohmann::json evidence{{"notes", inspection.notes},
                                  {"mode", std::string(toString(state.mode))},
                                  {"product", hardware.product},
                                  {"cpus", hardware.cpus},
                                  {"memory_bytes", hardware.memory_bytes},
                                  {"gpus", hardware.gpus.size()}};
    facts.push_back(fact(node.name, kInspected, inspection.value(expectationDigest(node, profile)),
                         source, jsonText(evidence)));
    for (const auto& [name, value] : hardwareFacts(node, profile, hardware))
      facts.push_back(fact(node.name, name, value, source));
  }
  if (state.mode == Mode::Disk) {
    const auto image = images_.installedValue(state.image_digest);
    facts.push_back(fact(node.name, kImage, image, source));
    // What runs in memory says nothing of the disks.
    const bool in_memory = deps_.cluster.isLive(profile) && known;
    facts.push_back(fact(node.name, lifecycle::kInstalledFacet,
                         in_memory ? diskContent(profile, hardware) : image, source));
    facts.push_back(fact(node.name, kOs, std::string(kRunning), source));
    return;
  }
  facts.push_back(fact(node.name, kOs, "ram", source));
  if (!known) return;
  const auto held = diskContent(profile, hardware);
  facts.push_back(fact(node.name, lifecycle::kInstalledFacet, held, source));
  if (held == kNone || deps_.cluster.isLive(profile))
    facts.push_back(fact(node.name, kImage, std::string(kNone), source));
}

Async<void> NodeReader::addDriverFacts(NodeName node, bool fresh, std::vector<Fact>* facts) const {
  const auto state = deps_.agents.state(node);
  const auto* declared = deps_.cluster.findNode(node);
  if (!state || state->mode != Mode::Disk || !declared) co_return Result<void>();
  const auto& drivers = deps_.cluster.profileOf(*declared).drivers;
  auto values = state->probes;
  std::vector<std::string> wanted;
  bool missing = fresh && !state->fresh;
  for (const auto& name : drivers)
    for (const auto& [probe, glob] : probesOf(deps_.cluster.drivers.at(name))) {
      wanted.push_back(probe);
      missing = missing || !values.contains(probe);
    }
  const bool has_network = deps_.cluster.profileOf(*declared).network.has_value();
  if (has_network) {
    wanted.emplace_back(kNetwork);
    missing = missing || !values.contains(std::string(kNetwork));
  }
  if (wanted.empty()) co_return Result<void>();
  if (missing) {
    const wire::AgentTask task{"probe." + node.str() + "." + io::randomToken(9), TaskKind::Probe,
                               toJson(wire::ProbeParams{wanted}), kProbeLimit};
    CO_TRY(report, co_await deps_.agents.runTask(node, task));
    CO_TRY(json, parseJson(report.result, kAgentJson));
    if (!json.is_object())
      co_return fail(ErrorCode::Corrupt, "the probes of " + node.str() + " are not a JSON object");
    values.clear();
    for (const auto& [probe, value] : json.items())
      values[probe] = value.is_string() ? value.get<std::string>() : jsonText(value);
  }
  for (const auto& name : drivers) {
    std::map<std::string, std::string> running;
    for (const auto& [probe, glob] : probesOf(deps_.cluster.drivers.at(name)))
      running[probe] = values[probe];
    facts->push_back(fact(node, driverFacet(name).str(), joinProbes(running),
                          lifecycle::agentSource(Subject(node))));
  }
  if (has_network) {
    const auto given = values.find(std::string(kNetwork));
    facts->push_back(fact(node, kNetwork,
                          given == values.end() ? std::string(kNone) : given->second,
                          lifecycle::agentSource(Subject(node))));
  }
  co_return Result<void>();
}

Async<AgentState> NodeReader::lookAgain(NodeName node) const {
  const wire::AgentTask task{"inspect." + node.str() + "." + io::randomToken(9), TaskKind::Inspect,
                             inspectParams(deps_.cluster, node), kInspectLimit};
  CO_TRY_OK(co_await deps_.agents.runTask(node, task));
  const auto state = deps_.agents.state(node);
  if (!state)
    co_return fail(
        ErrorCode::Unavailable,
        "the agent of " + node.str() + " stopped answering during the query of its hardware");
  co_return *state;
}

}  // namespace muster::provision
