// SPDX-License-Identifier: Apache-2.0
#include "monitor/kernel_evidence.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/log.h"
#include "lifecycle/model/json.h"

namespace muster::monitor {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kReadLimit{30};
constexpr std::size_t kIdBytes = 16;

std::string keyOf(const NodeName& node) { return "kernel-log." + node.str(); }

}  // namespace

Result<void> storeKernelLog(gateway::AgentGateway& agents, lifecycle::Store& store,
                            const gateway::AgentState& state, const std::string& what,
                            WallTime now) {
  const auto id =
      "kernel-log." +
      io::sha256Hex(state.node.str() + "\n" + state.boot_id + "\n" + what).substr(0, kIdBytes);
  const auto report = agents.report(state.node, id);
  if (!report) {
    TRY(text, store.getValue(keyOf(state.node)));
    const auto kept = text ? jsonOrNone(*text, kKeptJson) : json();
    if (kept.is_object() && kept.value("task", "") == id) return {};
    const auto asked = agents.submit(state.node, {id, wire::TaskKind::KernelLog, "{}", kReadLimit});
    if (!asked)
      logWarning("monitor", "the kernel log of {} was not asked for: {}", state.node.str(),
                 asked.error().str());
    return {};
  }
  if (report->phase != wire::TaskPhase::Done) return {};
  TRY(text, store.getValue(keyOf(state.node)));
  const auto kept = text ? jsonOrNone(*text, kKeptJson) : json();
  if (kept.is_object() && kept.value("task", "") == id) return {};
  const auto result = jsonOrNone(report->result, kAgentJson);
  if (!result.is_object() || !result.contains("lines") || !result["lines"].is_array()) return {};
  return store.putValue(keyOf(state.node), lifecycle::canonical({{"task", id},
                                                                 {"boot", state.boot_id},
                                                                 {"for", what},
                                                                 {"at", muster::toString(now)},
                                                                 {"lines", result["lines"]}}));
}

Result<std::string> storedKernelLog(lifecycle::Store& store, const NodeName& node) {
  TRY(text, store.getValue(keyOf(node)));
  if (!text)
    return std::string(
        "no kernel log is stored: `muster monitor` asks for it when a node becomes unhealthy\n");
  const auto kept = jsonOrNone(*text, kKeptJson);
  if (!kept.is_object())
    return fail(ErrorCode::Corrupt, "the kept kernel log of " + node.str() + " cannot be read");
  auto out = fmt::format("# boot {}, kept at {} because of {}\n", kept.value("boot", ""),
                         kept.value("at", ""), kept.value("for", ""));
  const auto lines = kept.value("lines", json::array());
  for (const auto& line : lines)
    if (line.is_string()) out += line.get<std::string>() + "\n";
  return out;
}

}  // namespace muster::monitor
