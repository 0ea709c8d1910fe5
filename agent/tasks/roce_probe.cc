// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/roce_probe.h"

#include "agent/tasks/lldp.h"
#include "agent/tasks/sysfs.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"

#include <nlohmann/json.hpp>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::seconds kToolLimit{10};
constexpr int kIpAndIcmpBytes = 28, kSmallPacketBytes = 128;
constexpr std::size_t kMostGids =
    32;  // told of a device; a table has 256 rows, nearly all of them empty

std::string lineOf(const fs::path& path) {
  auto text = io::readFile(path, kMaxSysfsBytes).value_or("");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

/// The network interface of an RDMA device: its PCI device's, or (soft-RoCE has none) that of its
/// first GID. Empty: it has none.
std::string interfaceOf(const fs::path& device) {
  const auto interfaces = childrenOf(device / "device/net");
  return interfaces.empty() ? lineOf(device / "ports/1/gid_attrs/ndevs/0")
                            : interfaces.front().filename().string();
}

/// {"3": {"gid": "0000:…:ffff:0a01:0001", "type": "RoCE v2"}, …}
json gidsOf(const fs::path& device) {
  json out = json::object();
  const auto port = device / "ports/1";
  for (const auto& row : childrenOf(port / "gids")) {
    const auto gid = lineOf(row), index = row.filename().string();
    if (gid.find_first_not_of("0:") == std::string::npos || out.size() >= kMostGids) continue;
    out[index] = {{"gid", gid}, {"type", lineOf(port / "gid_attrs/types" / index)}};
  }
  return out;
}

/// {"roce_np": [3], "roce_rp": [3], "cnp_dscp": 48}: congestion control, where the driver (mlx5's
/// of DOCA or OFED) shows it; the lists are priorities.
json ecnOf(const fs::path& interface) {
  json out = json::object();
  for (const char* side : {"roce_np", "roce_rp"})
    for (const auto& priority : childrenOf(interface / "ecn" / side / "enable")) {
      auto& on = out.emplace(side, json::array()).first.value();
      if (lineOf(priority) == "1") on.push_back(std::atoi(priority.filename().c_str()));
    }
  if (const auto dscp = lineOf(interface / "ecn/roce_np/cnp_dscp"); !dscp.empty())
    out["cnp_dscp"] = std::atoi(dscp.c_str());
  return out;
}

Task<json> dcb(TaskTools tools, std::string what, std::string interface) {
  std::vector<std::string> args = {"-j", what, "show", "dev", interface};
  auto out = co_await runTool(tools, "dcb", std::move(args), kToolLimit);
  if (!out) co_return json{{"error", out.error().str()}};
  auto parsed = jsonOrNone(*out, kToolJson);
  co_return parsed.is_object() ? parsed
                               : json{{"error", "dcb printed no JSON: " + out->substr(0, 200)}};
}

/// Its first IPv4 address; empty: none.
Task<std::string> addressOf(TaskTools tools, std::string interface) {
  std::vector<std::string> args = {"-j", "-4", "addr", "show", "dev", interface};
  auto out = co_await runTool(tools, "ip", std::move(args), kToolLimit);
  const auto parsed = out ? jsonOrNone(*out, kToolJson) : json();
  for (const auto& link : parsed.is_array() ? parsed : json::array())
    for (const auto& address :
         link.is_object() ? link.value("addr_info", json::array()) : json::array())
      if (address.is_object() && address.contains("local") && address["local"].is_string())
        co_return address["local"].get<std::string>();
  co_return std::string();
}

/// Two packets of so many bytes, which nobody may divide, and little patience: all ways of a node
/// are tried within one probe. Empty: one came back; else why not.
Task<std::string> pingOnce(TaskTools tools, std::string interface, std::string address,
                           int packet_bytes) {
  std::vector<std::string> args = {"-n",
                                   "-M",
                                   "do",
                                   "-c",
                                   "2",
                                   "-i",
                                   "0.2",
                                   "-W",
                                   "1",
                                   "-I",
                                   interface,
                                   "-s",
                                   std::to_string(packet_bytes - kIpAndIcmpBytes),
                                   address};
  auto out = co_await runTool(tools, "ping", std::move(args), kToolLimit);
  co_return out ? std::string() : out.error().str();
}

}  // namespace

Task<std::string> roceProbe(TaskTools tools) {
  json out = json::object();
  std::vector<std::string> json_args = {"-f", "json"};
  auto output = co_await runTool(tools, "lldpctl", std::move(json_args), kToolLimit);
  const auto neighbours = output ? parseLldpctl(*output).value_or(std::vector<wire::Neighbour>{})
                                 : std::vector<wire::Neighbour>{};
  const auto frames = output ? frameSizes(*output) : std::map<std::string, int>();
  for (const auto& device : childrenOf(tools.root / "sys/class/infiniband")) {
    const auto interface = interfaceOf(device);
    if (lineOf(device / "ports/1/link_layer") != "Ethernet" || interface.empty()) continue;
    json row = {
        {"interface", interface},
        {"mtu", std::atoi(lineOf(tools.root / "sys/class/net" / interface / "mtu").c_str())},
        {"gids", gidsOf(device)}};
    for (const char* what : {"app", "pfc"}) {
      row[what] = co_await dcb(tools, what, interface);
    }
    if (auto ecn = ecnOf(tools.root / "sys/class/net" / interface); !ecn.empty())
      row["ecn"] = std::move(ecn);
    // "Global tclass=106", of mlx5
    const auto traffic_class = lineOf(device / "tc/1/traffic_class");
    if (const auto at = traffic_class.find('='); at != std::string::npos)
      row["traffic_class"] = std::atoi(traffic_class.c_str() + at + 1);
    for (const auto& one : neighbours)
      if (one.nic == interface)
        row["neighbour"] = {{"switch", one.switch_name}, {"port", one.port}};
    if (const auto bytes = frames.find(interface);
        bytes != frames.end() && row.contains("neighbour"))
      row["neighbour"]["frame_bytes"] = bytes->second;
    if (const auto address = co_await addressOf(tools, interface); !address.empty())
      row["address"] = address;
    out[device.filename().string()] = std::move(row);
  }
  co_return jsonText(out);
}

Task<std::string> rocePathProbe(TaskTools tools, std::string way) {
  const auto dot = way.find('.');
  const auto device = way.substr(0, dot),
             address = dot == std::string::npos ? std::string() : way.substr(dot + 1);
  const auto interface = interfaceOf(tools.root / "sys/class/infiniband" / device);
  if (address.empty() || interface.empty())
    co_return "silent: " + device + " has no interface here";
  const int mtu = std::atoi(lineOf(tools.root / "sys/class/net" / interface / "mtu").c_str());
  if ((co_await pingOnce(tools, interface, address, mtu)).empty())
    co_return fmt::format("passes {}", mtu);
  const auto trouble = co_await pingOnce(tools, interface, address, kSmallPacketBytes);
  co_return trouble.empty() ? fmt::format("blocked {}", mtu) : "silent: " + trouble;
}

}  // namespace muster::agent
