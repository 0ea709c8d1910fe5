#include "agent/tasks/nvlink_probe.h"

#include "agent/tasks/lldp.h"
#include "agent/tasks/sysfs.h"
#include "base/io/files.h"

#include <nlohmann/json.hpp>

#include <charconv>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::seconds kToolLimit{10};
constexpr const char* kChannel = "dev/nvidia-caps-imex-channels/channel0";
constexpr std::size_t kNamedNodes = 4;
constexpr int kIpAndIcmpBytes = 28, kSmallPacketBytes = 128;

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

std::string lineOf(const fs::path& path) { return trimmed(io::readFile(path, kMaxSysfsBytes).value_or("")); }

Task<json> dcb(TaskTools tools, std::string what, std::string interface) {
  std::vector<std::string> args = {"-j", what, "show", "dev", interface};
  auto run = runTool(tools, "dcb", std::move(args), kToolLimit);
  auto out = co_await std::move(run);
  if (!out) co_return json{{"error", out.error().str()}};
  auto parsed = json::parse(*out, nullptr, false);
  co_return parsed.is_object() ? parsed : json{{"error", "dcb said no JSON: " + out->substr(0, 200)}};
}

/// Its first IPv4 address; empty: none.
Task<std::string> addressOf(TaskTools tools, std::string interface) {
  std::vector<std::string> args = {"-j", "-4", "addr", "show", "dev", interface};
  auto run = runTool(tools, "ip", std::move(args), kToolLimit);
  auto out = co_await std::move(run);
  const auto parsed = out ? json::parse(*out, nullptr, false) : json();
  for (const auto& link : parsed.is_array() ? parsed : json::array())
    for (const auto& address : link.is_object() ? link.value("addr_info", json::array()) : json::array())
      if (address.is_object() && address.contains("local") && address["local"].is_string()) co_return address["local"].get<std::string>();
  co_return std::string();
}

/// Two packets of so many bytes, which nobody may divide, and little patience: all ways of a node are tried within one probe. Empty: one came
/// back; else why not.
Task<std::string> pingOnce(TaskTools tools, std::string interface, std::string address, int packet_bytes) {
  std::vector<std::string> args = {"-n", "-M", "do", "-c", "2", "-i", "0.2", "-W", "1", "-I", interface, "-s", std::to_string(packet_bytes - kIpAndIcmpBytes), address};
  auto run = runTool(tools, "ping", std::move(args), kToolLimit);
  auto out = co_await std::move(run);
  co_return out ? std::string() : out.error().str();
}

}  // namespace

namespace {

/// Ways of one node to others that are not there, of a node that says it is ready.
std::vector<std::string> brokenWays(const json& node) {
  std::vector<std::string> out;
  const auto ways = node.value("connections", json::object());
  for (const auto& [index, way] : ways.items())
    if (const auto state = way.is_object() ? way.value("status", "not told") : "not told"; state != "CONNECTED")
      out.push_back(fmt::format("{} to {} {}", node.value("host", "a node"), way.is_object() ? way.value("host", index) : index, state));
  return out;
}

}  // namespace

Result<std::string> imexState(std::string_view text) {
  const auto parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("status") || !parsed["status"].is_string() || !parsed.contains("nodes") || !parsed["nodes"].is_object())
    return fail(ErrorCode::Corrupt, fmt::format("nvidia-imex-ctl -N -j said: {}", text.substr(0, 200)));
  const auto status = parsed["status"].get<std::string>();
  std::vector<std::string> wrong;
  std::set<std::string> versions;
  for (const auto& [index, node] : parsed["nodes"].items()) {
    const auto state = node.is_object() ? node.value("status", "not told") : "not told";
    if (node.is_object() && node.contains("version") && node["version"].is_string()) versions.insert(node["version"].get<std::string>());
    if (state != "READY")
      wrong.push_back(fmt::format("{} {}", node.is_object() ? node.value("host", index) : index, state));
    else
      for (auto& way : brokenWays(node)) wrong.push_back(std::move(way));
  }
  if (status == "UP" && wrong.empty() && versions.size() <= 1) return fmt::format("UP nodes={}", parsed["nodes"].size());
  if (versions.size() > 1) wrong.push_back(fmt::format("versions {}", fmt::join(versions, " and ")));
  const auto more = wrong.size() > kNamedNodes ? wrong.size() - kNamedNodes : 0;
  wrong.resize(std::min(wrong.size(), kNamedNodes));
  return fmt::format("{}: {}{}", status == "UP" ? "NOT READY" : status, fmt::join(wrong, ", "), more ? fmt::format(" and {} more", more) : "");
}

Task<std::string> imexProbe(TaskTools tools) {
  std::error_code ignored;
  std::vector<std::string> args = {"-N", "-j"};
  auto run = runTool(tools, "nvidia-imex-ctl", std::move(args), kToolLimit);
  auto out = co_await std::move(run);
  if (!out) co_return "no answer: " + out.error().str();
  auto state = imexState(*out);
  if (!state) co_return "no answer: " + state.error().str();
  if (state->starts_with("UP ") && !fs::exists(tools.root / kChannel, ignored))
    co_return fmt::format("no channel: /{} is not there; load nvidia with NVreg_CreateImexChannel0=1", kChannel);
  co_return std::move(*state);
}

Task<std::string> nvlinkDomainProbe(TaskTools tools) {
  std::vector<std::string> args = {"tool", "nvlink-domain"};
  auto run = runTool(tools, tools.self.string(), std::move(args), kToolLimit);
  auto out = co_await std::move(run);
  co_return out ? trimmed(*out) : "none: " + out.error().str();
}

Task<std::string> roceProbe(TaskTools tools) {
  json out = json::object();
  std::vector<std::string> json_args = {"-f", "json"};
  auto ask_neighbours = runTool(tools, "lldpctl", std::move(json_args), kToolLimit);
  auto told = co_await std::move(ask_neighbours);
  const auto neighbours = told ? parseLldpctl(*told).value_or(std::vector<Neighbour>{}) : std::vector<Neighbour>{};
  const auto frames = told ? frameSizes(*told) : std::map<std::string, int>();
  for (const auto& device : childrenOf(tools.root / "sys/class/infiniband")) {
    const auto interfaces = childrenOf(device / "device/net");
    if (lineOf(device / "ports/1/link_layer") != "Ethernet" || interfaces.empty()) continue;
    const auto interface = interfaces.front().filename().string();
    json row = {{"interface", interface}, {"mtu", std::atoi(lineOf(tools.root / "sys/class/net" / interface / "mtu").c_str())}};
    for (const char* what : {"app", "pfc"}) {
      auto ask = dcb(tools, what, interface);
      row[what] = co_await std::move(ask);
    }
    // "Global tclass=106", of mlx5
    const auto traffic_class = lineOf(device / "tc/1/traffic_class");
    if (const auto at = traffic_class.find('='); at != std::string::npos) row["traffic_class"] = std::atoi(traffic_class.c_str() + at + 1);
    for (const auto& one : neighbours)
      if (one.nic == interface) row["neighbour"] = {{"switch", one.switch_name}, {"port", one.port}};
    if (const auto bytes = frames.find(interface); bytes != frames.end() && row.contains("neighbour")) row["neighbour"]["frame_bytes"] = bytes->second;
    auto ask_address = addressOf(tools, interface);
    if (const auto address = co_await std::move(ask_address); !address.empty()) row["address"] = address;
    out[device.filename().string()] = std::move(row);
  }
  co_return out.dump();
}

Task<std::string> rocePathProbe(TaskTools tools, std::string way) {
  const auto dot = way.find('.');
  const auto device = way.substr(0, dot), address = dot == std::string::npos ? std::string() : way.substr(dot + 1);
  const auto interfaces = childrenOf(tools.root / "sys/class/infiniband" / device / "device/net");
  if (address.empty() || interfaces.empty()) co_return "silent: " + device + " has no interface here";
  const auto interface = interfaces.front().filename().string();
  const int mtu = std::atoi(lineOf(tools.root / "sys/class/net" / interface / "mtu").c_str());
  auto large = pingOnce(tools, interface, address, mtu);
  if ((co_await std::move(large)).empty()) co_return fmt::format("passes {}", mtu);
  auto small = pingOnce(tools, interface, address, kSmallPacketBytes);
  const auto trouble = co_await std::move(small);
  co_return trouble.empty() ? fmt::format("blocked {}", mtu) : "silent: " + trouble;
}

}  // namespace muster::agent
