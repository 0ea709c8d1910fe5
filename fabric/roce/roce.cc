// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/roce.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/fabric.h"

#include <nlohmann/json.hpp>

#include <charconv>

namespace muster::fabric {

namespace {

using inventory::Roce;
using nlohmann::json;

constexpr int kDscps = 64, kPriorities = 8;
constexpr std::string_view kMap = "MUSTER";              // name of our maps in config_db
constexpr int kDetectionMs = 200, kRestorationMs = 400;  // of the PFC watchdog, SONiC's own example
constexpr int kKib = 1024;

/// SONiC of today names a map "AZURE", of yesterday "[DSCP_TO_TC_MAP|AZURE]".
std::string mapName(const std::string& reference) {
  auto bar = reference.find('|');
  return bar == std::string::npos ? reference
                                  : reference.substr(bar + 1, reference.find(']') - bar - 1);
}

const json* at(const json& object, std::initializer_list<std::string> path) {
  const json* here = &object;
  for (const auto& key : path) {
    auto inner = here->is_object() ? here->find(key) : here->end();
    if (!here->is_object() || inner == here->end()) return nullptr;
    here = &*inner;
  }
  return here;
}

std::string textAt(const json& object, std::initializer_list<std::string> path) {
  const auto* value = at(object, path);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The class that each class or DSCP is mapped to; what is not said is 0.
Result<std::map<int, int>> mapAt(const json& config, const std::string& table,
                                 const std::string& name) {
  const auto* entries = at(config, {table, name});
  if (!entries || !entries->is_object())
    return fail(ErrorCode::Corrupt, fmt::format("config_db has no {}|{}", table, name));
  std::map<int, int> out;
  for (const auto& [from, to] : entries->items()) {
    auto key = number(from), value = to.is_string() ? number(to.get<std::string>()) : std::nullopt;
    if (!key || !value)
      return fail(ErrorCode::Corrupt,
                  fmt::format("{}|{} maps {} to {}", table, name, from, jsonText(to)));
    out[*key] = *value;
  }
  return out;
}

std::string listed(const std::set<int>& numbers) {
  return numbers.empty() ? "none" : fmt::format("{}", fmt::join(numbers, ","));
}

}  // namespace

Marking declaredMarking(const Roce& roce) {
  return {{{roce.dscp, roce.priority}, {roce.cnp_dscp, roce.cnp_priority}},
          {roce.priority},
          true,
          roce.mtu};
}

std::string roceHostScript(const Roce& roce, const std::vector<std::string>& rdma_devices) {
  std::string pfc;
  for (int priority = 0; priority < kPriorities; ++priority)
    pfc += fmt::format(" {}:{}", priority, priority == roce.priority ? "on" : "off");
  return fmt::format(R"(#!/bin/sh
# Written by muster from the inventory. Marks RDMA with DSCP {dscp} (priority {priority}, lossless) and notifications with DSCP {cnp_dscp} (priority {cnp_priority}).
set -eu
no_dcb() {{ echo "$interface of $device does not take what dcb says: its driver has no DCB, or leaves it to the firmware of the card" >&2; exit 1; }}
for device in {devices}; do
  # A device of its own hardware has its interfaces there; soft-RoCE only names the one that it sits on.
  for interface in $(ls "/sys/class/infiniband/$device/device/net" 2>/dev/null || cat "/sys/class/infiniband/$device/ports/1/gid_attrs/ndevs/0"); do
    ip link set dev "$interface" mtu {mtu}
    dcb app replace dev "$interface" dscp-prio {dscp}:{priority} {cnp_dscp}:{cnp_priority} || no_dcb   # with the first entry mlx5 trusts DSCP
    dcb pfc set dev "$interface" prio-pfc{pfc} || no_dcb
    for side in roce_np roce_rp; do   # congestion control: notification and reaction point
      [ ! -e "/sys/class/net/$interface/ecn/$side/enable/{priority}" ] || echo 1 >"/sys/class/net/$interface/ecn/$side/enable/{priority}"
    done
    [ ! -e "/sys/class/net/$interface/ecn/roce_np/cnp_dscp" ] || echo {cnp_dscp} >"/sys/class/net/$interface/ecn/roce_np/cnp_dscp"
  done
  for port in /sys/class/infiniband/$device/tc/*; do [ ! -e "$port/traffic_class" ] || echo {class} >"$port/traffic_class"; done
  if command -v cma_roce_tos >/dev/null; then cma_roce_tos -d "$device" -t {class} >/dev/null; fi
done
)",
                     fmt::arg("dscp", roce.dscp), fmt::arg("priority", roce.priority),
                     fmt::arg("cnp_dscp", roce.cnp_dscp),
                     fmt::arg("cnp_priority", roce.cnp_priority),
                     fmt::arg("devices", fmt::join(rdma_devices, " ")), fmt::arg("mtu", roce.mtu),
                     fmt::arg("pfc", pfc), fmt::arg("class", roce.trafficClass()));
}

namespace {

/// SONiC gives these two one row of lossless buffers; another row for one of them would overlap.
constexpr int kFirstLossless = 3, kLastLossless = 4;

std::string losslessGroups(const Roce& roce) {
  const bool usual = roce.priority == kFirstLossless || roce.priority == kLastLossless;
  return usual ? fmt::format("{}-{}", kFirstLossless, kLastLossless)
               : std::to_string(roce.priority);
}

}  // namespace

std::string roceSonic(const Roce& roce, const std::vector<std::string>& ports, SonicAsic asic) {
  const std::string map(kMap), lossless = std::to_string(roce.priority),
                               notify = std::to_string(roce.cnp_priority);
  const auto wanted = declaredMarking(roce);
  json out;
  for (int dscp = 0; dscp < kDscps; ++dscp) {
    auto mapped = wanted.priority_of.find(dscp);
    out["DSCP_TO_TC_MAP"][map][std::to_string(dscp)] =
        std::to_string(mapped == wanted.priority_of.end() ? 0 : mapped->second);
  }
  for (int tc = 0; tc < kPriorities; ++tc) {
    auto name = std::to_string(tc);
    out["TC_TO_QUEUE_MAP"][map][name] = name;
    out["TC_TO_PRIORITY_GROUP_MAP"][map][name] = tc == roce.priority ? name : "0";
    out["MAP_PFC_PRIORITY_TO_QUEUE"][map][name] = name;
  }
  if (mapsPfcToGroups(asic)) out["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"][map][lossless] = lossless;
  out["WRED_PROFILE"]["MUSTER_ECN"] = {
      {"ecn", "ecn_all"},
      {"wred_green_enable", "true"},
      {"green_min_threshold", std::to_string(roce.ecn_min_kib * kKib)},
      {"green_max_threshold", std::to_string(roce.ecn_max_kib * kKib)},
      {"green_drop_probability", std::to_string(roce.ecn_percent)}};
  out["SCHEDULER"]["MUSTER_STRICT"] = {{"type", "STRICT"}};
  out["SCHEDULER"]["MUSTER_SHARED"] = {{"type", "DWRR"}, {"weight", "50"}};
  for (const auto& port : ports) {
    out["PORT_QOS_MAP"][port] = {{"dscp_to_tc_map", map},  {"tc_to_queue_map", map},
                                 {"tc_to_pg_map", map},    {"pfc_to_queue_map", map},
                                 {"pfc_enable", lossless}, {"pfcwd_sw_enable", lossless}};
    if (mapsPfcToGroups(asic)) {
      out["PORT_QOS_MAP"][port]["pfc_to_pg_map"] = map;
      out["BUFFER_PG"][port + "|" + losslessGroups(roce)] = {{"profile", "NULL"}};  // computed
    }
    out["QUEUE"][port + "|" + lossless] = {{"wred_profile", "MUSTER_ECN"},
                                           {"scheduler", "MUSTER_SHARED"}};
    out["QUEUE"][port + "|" + notify] = {{"scheduler", "MUSTER_STRICT"}};
    out["PORT"][port] = {{"mtu", std::to_string(roce.mtu)}};
    out["PFC_WD"][port] = {{"action", "drop"},
                           {"detection_time", std::to_string(kDetectionMs)},
                           {"restoration_time", std::to_string(kRestorationMs)}};
  }
  return jsonText(out, 2) + "\n";
}

std::string_view nvueRoceOn(NvueSince since) {
  return since == NvueSince::Cumulus515 ? "state enabled" : "enable on";
}

std::string roceCumulus(const Roce& roce, NvueSince since) {
  return fmt::format(
      R"(# Written by muster from the inventory, for Cumulus Linux {releases}.
nv set qos roce {on}
nv set qos roce mode lossless
nv set qos mapping default-global trust l3
nv set qos mapping default-global dscp {dscp} switch-priority {priority}
nv set qos mapping default-global dscp {cnp_dscp} switch-priority {cnp_priority}
nv set qos pfc default-global switch-priority {priority}
nv set qos congestion-control default-global traffic-class {priority} min-threshold-bytes {low}
nv set qos congestion-control default-global traffic-class {priority} max-threshold-bytes {high}
nv set qos congestion-control default-global traffic-class {priority} probability {percent}
nv set qos egress-scheduler default-global traffic-class {cnp_priority} mode strict
nv config apply
)",
      fmt::arg("releases", since == NvueSince::Cumulus515 ? "5.15 and later" : "before 5.15"),
      fmt::arg("on", nvueRoceOn(since)), fmt::arg("dscp", roce.dscp),
      fmt::arg("priority", roce.priority), fmt::arg("cnp_dscp", roce.cnp_dscp),
      fmt::arg("cnp_priority", roce.cnp_priority), fmt::arg("low", roce.ecn_min_kib * kKib),
      fmt::arg("high", roce.ecn_max_kib * kKib), fmt::arg("percent", roce.ecn_percent));
}

namespace {

Result<Marking> markingOf(const json& config, const std::string& port) {
  auto map = mapName(textAt(config, {"PORT_QOS_MAP", port, "dscp_to_tc_map"}));
  if (map.empty()) map = mapName(textAt(config, {"PORT_QOS_MAP", "global", "dscp_to_tc_map"}));
  if (map.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("port {} has no dscp_to_tc_map: it ignores DSCP", port));
  Marking out;
  TRY(classes, mapAt(config, "DSCP_TO_TC_MAP", map));
  out.priority_of = std::move(classes);
  std::string paused = textAt(config, {"PORT_QOS_MAP", port, "pfc_enable"});
  for (std::string_view rest = paused; !rest.empty();) {
    auto comma = rest.find(',');
    if (auto priority = number(rest.substr(0, comma))) out.lossless.insert(*priority);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  out.mtu = number(textAt(config, {"PORT", port, "mtu"})).value_or(0);
  return out;
}

}  // namespace

Result<Marking> sonicMarking(std::string_view config_db, const std::string& port) {
  auto config = jsonOrNone(config_db, kToolJson);
  if (!config.is_object()) return fail(ErrorCode::Corrupt, "config_db is not a JSON object");
  return markingOf(config, port);
}

Result<Marking> hostMarking(std::string_view dcb_app, std::string_view dcb_pfc, int mtu) {
  auto app = jsonOrNone(dcb_app, kToolJson), pfc = jsonOrNone(dcb_pfc, kToolJson);
  if (!app.is_object() || !pfc.is_object())
    return fail(ErrorCode::Corrupt, "dcb did not answer in JSON");
  Marking out;
  out.mtu = mtu;
  const auto* entries = at(app, {"dscp_prio"});
  out.trusts_dscp = entries && entries->is_array() && !entries->empty();
  for (const auto& entry : out.trusts_dscp ? *entries : json::array()) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_integer() ||
        !entry[1].is_number_integer())
      return fail(ErrorCode::Corrupt, fmt::format("dcb app says {}", jsonText(entry)));
    out.priority_of[entry[0].get<int>()] = entry[1].get<int>();
  }
  const auto* on = at(pfc, {"prio_pfc"});
  if (!on || !on->is_array() || on->size() != kPriorities)
    return fail(ErrorCode::Corrupt, "dcb pfc did not report eight priorities");
  for (int priority = 0; priority < kPriorities; ++priority) {
    const auto& value = (*on)[static_cast<std::size_t>(priority)];
    if (value == true || value == "on") out.lossless.insert(priority);
  }
  return out;
}

std::vector<std::string> disagreements(const Roce& roce, const Marking& found) {
  auto out = qosDisagreements(roce, found);
  if (auto mtu = mtuDisagreement(roce, found)) out.push_back(*std::move(mtu));
  return out;
}

std::optional<std::string> mtuDisagreement(const Roce& roce, const Marking& found) {
  const int wanted = declaredMarking(roce).mtu;
  if (!found.mtu || found.mtu == wanted) return std::nullopt;
  return fmt::format("the MTU is {} instead of {}", found.mtu, wanted);
}

std::vector<std::string> qosDisagreements(const Roce& roce, const Marking& found) {
  std::vector<std::string> out;
  const auto wanted = declaredMarking(roce);
  if (!found.trusts_dscp) out.push_back("it ignores DSCP");
  for (const auto& [dscp, priority] : wanted.priority_of) {
    auto mapped = found.priority_of.find(dscp);
    auto there = mapped == found.priority_of.end() ? 0 : mapped->second;
    if (there != priority)
      out.push_back(fmt::format("DSCP {} has priority {} instead of {}{}", dscp, there, priority,
                                dscp == roce.dscp ? ": RDMA is not lossless" : ""));
  }
  for (const auto& [dscp, priority] : found.priority_of)
    if (priority == roce.priority && dscp != roce.dscp)
      out.push_back(fmt::format("DSCP {} shares the lossless priority {}", dscp, priority));
  if (found.lossless != wanted.lossless)
    out.push_back(fmt::format("PFC is on for {} instead of {}", listed(found.lossless),
                              listed(wanted.lossless)));
  return out;
}

}  // namespace muster::fabric
