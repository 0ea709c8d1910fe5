// SPDX-License-Identifier: Apache-2.0
#include "discovery/machine.h"

#include "bmc/machine_identity.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace muster::discovery {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string plainUuid(const std::string& text) {
  std::string out;
  for (const char c : lower(text))
    if (std::isxdigit(static_cast<unsigned char>(c))) out += c;
  return out;
}

/// The first three fields with their bytes turned round.
std::string turned(const std::string& hex) {
  if (hex.size() != 32) return hex;
  auto byte = [&](int i) { return hex.substr(static_cast<std::size_t>(i) * 2, 2); };
  return byte(3) + byte(2) + byte(1) + byte(0) + byte(5) + byte(4) + byte(7) + byte(6) +
         hex.substr(16);
}

}  // namespace

bool isRealSerial(const std::string& serial) { return bmc::isRealSerial(serial); }

bool sameUuid(const std::string& a, const std::string& b) {
  const auto first = plainUuid(a), second = plainUuid(b);
  if (first.size() != 32 || second.size() != 32 ||
      first.find_first_not_of('0') == std::string::npos)
    return false;
  return first == second || turned(first) == second;
}

std::string Machine::id() const {
  if (isRealSerial(serial)) return serial;
  if (!bmc.empty()) return bmc.substr(bmc.find("//") == std::string::npos ? 0 : bmc.find("//") + 2);
  return macs.empty() ? uuid : macs.front();
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (const char c : text.substr(0, max_bytes))
    if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) out += c;
  return out;
}

std::string Machine::gpuText() const {
  std::map<std::string, int> counts;
  for (const auto& gpu : gpus) ++counts[gpu.model.empty() ? "GPU" : gpu.model];
  std::string out;
  for (const auto& [model, count] : counts)
    out += fmt::format("{}{}× {}", out.empty() ? "" : ", ", count, model);
  return out;
}

nlohmann::json toJson(const Machine& machine) {
  nlohmann::json gpus = nlohmann::json::array();
  for (const auto& gpu : machine.gpus)
    gpus.push_back({{"model", gpu.model}, {"serial", gpu.serial}});
  return {{"id", machine.id()},
          {"bmc", machine.bmc},
          {"vendor", machine.vendor},
          {"model", machine.model},
          {"serial", machine.serial},
          {"uuid", machine.uuid},
          {"bmc_version", machine.bmc_version},
          {"macs", machine.macs},
          {"bmc_macs", machine.bmc_macs},
          {"relay", machine.relay},
          {"certificate", machine.certificate},
          {"certificate_approved_by", machine.certificate_approved_by},
          {"boot_mac", machine.boot_mac},
          {"gpus", std::move(gpus)},
          {"credential", machine.credential},
          {"note", machine.note},
          {"seen_by", machine.seen_by},
          {"first_seen", muster::toString(machine.first_seen)},
          {"last_seen", muster::toString(machine.last_seen)},
          {"node", machine.node},
          {"profile", machine.profile},
          {"rack", machine.rack},
          {"approved_by", machine.approved_by}};
}

Result<Machine> machineOf(const nlohmann::json& json) {
  try {
    Machine out;
    auto text = [&](const char* key) { return json.at(key).get<std::string>(); };
    out.bmc = text("bmc"), out.vendor = text("vendor"), out.model = text("model"),
    out.serial = text("serial"), out.uuid = text("uuid");
    out.bmc_version = text("bmc_version"), out.boot_mac = text("boot_mac"),
    out.credential = text("credential"), out.note = text("note");
    out.relay = json.value("relay", "");  // books of earlier versions have none
    out.certificate = json.value("certificate", ""),
    out.certificate_approved_by = json.value("certificate_approved_by", "");
    out.node = text("node"), out.profile = text("profile"), out.rack = text("rack"),
    out.approved_by = text("approved_by");
    json.at("macs").get_to(out.macs);
    json.at("bmc_macs").get_to(out.bmc_macs);
    json.at("seen_by").get_to(out.seen_by);
    for (const auto& gpu : json.at("gpus"))
      out.gpus.push_back({gpu.at("model").get<std::string>(), gpu.at("serial").get<std::string>()});
    TRY(first, parseWallTime(text("first_seen")));
    TRY(last, parseWallTime(text("last_seen")));
    out.first_seen = first, out.last_seen = last;
    return out;
  } catch (const nlohmann::json::exception& broken) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the registry of discovered machines: {}", broken.what()));
  }
}

}  // namespace muster::discovery
