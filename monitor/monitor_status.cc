// SPDX-License-Identifier: Apache-2.0
#include "monitor/monitor_status.h"

#include "base/json_input.h"
#include "monitor/breakers.h"

#include <fmt/format.h>

namespace muster::monitor {
namespace {

using namespace lifecycle;
using nlohmann::json;

constexpr std::chrono::seconds kAgentTimeout{120};

}  // namespace

Result<KeepStatus> keepStatus(Store& store, WallTime now) {
  KeepStatus out;
  TRY(text, store.getValue(std::string(kKeepHeartbeat)));
  TRY(states, Breakers(store).read());
  if (text) {
    const auto beat = jsonOrNone(*text, kKeptJson);
    const auto at = beat.is_object() ? parseWallTime(beat.value("at", ""))
                                     : Result<WallTime>(fail(ErrorCode::Corrupt, "no time"));
    out.running = at && now - *at < kAgentTimeout;
    if (beat.is_object()) out.holder = beat.value("holder", "");
    if (at)
      out.text =
          out.running
              ? fmt::format("keep: runs; {} nodes are on their way out of their pools\n",
                            beat.value("draining", 0))
              : fmt::format("keep: does not run; it looked last at {}\n", muster::toString(*at));
    if (out.running && beat.is_object())
      for (const auto& trouble : beat.value("troubles", json::array()))
        if (trouble.is_string())
          out.text += fmt::format("keep: cannot look: {}\n", trouble.get<std::string>());
  }
  for (const auto& [pool, state] : states) {
    if (!state.open) continue;
    out.tripped = true;
    out.text += fmt::format(
        "keep: STOPPED in pool {}: {} nodes would be drained; `muster why @cluster`, then `muster "
        "keep --acknowledge --reason TEXT`\n",
        pool, state.nodes.size());
  }
  return out;
}

std::string watchDuringRollout(const Watchers& watchers, const KeepStatus& kept) {
  constexpr std::string_view kNobody =
      "nobody watches the health and the certificates of the other nodes";
  if (watchers.several_controllers)
    return fmt::format(
        "while it runs, {}: only the host that serves the site watches them, which is this one; "
        "the hosts that stand by do not\n",
        kNobody);
  const bool another = !watchers.own_store && kept.running && !kept.holder.empty() &&
                       kept.holder != watchers.this_holder;
  if (another)
    return fmt::format(
        "while it runs, muster monitor of this state folder stands aside; that of {}, which has "
        "the "
        "same store, goes on watching the other nodes\n",
        kept.holder);
  return fmt::format("while it runs, muster monitor of this state folder stands aside: {}\n",
                     kNobody);
}

}  // namespace muster::monitor
