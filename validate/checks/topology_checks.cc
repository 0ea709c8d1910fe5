// SPDX-License-Identifier: Apache-2.0
// How the machine is put together: which NIC is near which GPU, what bridges do with traffic
// between them, processors all there and alike.
#include "validate/checks/check_row.h"
#include "validate/checks/pci.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace muster::validate {
namespace {

/// P2P request and completion redirect. Source: PCI Express Base Specification, 7.7.11.3; NCCL's
/// documentation asks for both off on bare metal.
constexpr std::uint16_t kRedirects = 0x0004 | 0x0008;

Verdict concluded(const std::vector<std::string>& wrong, std::string good) {
  return wrong.empty() ? pass(std::move(good)) : failed(fmt::format("{}", fmt::join(wrong, "; ")));
}

/// NICs that share most of their way with this GPU.
std::set<std::string> nearest(const PciDevice& gpu,
                              const std::vector<std::pair<std::string, PciDevice>>& nics) {
  std::size_t most = 0;
  for (const auto& [name, nic] : nics) most = std::max(most, commonDepth(gpu, nic));
  std::set<std::string> names;
  for (const auto& [name, nic] : nics) {
    const bool as_near = most > 0
                             ? commonDepth(gpu, nic) == most
                             : gpu.numa_node == nic.numa_node;  // under no common root complex: the
                                                                // memory node is what they share
    if (as_near) names.insert(name);
  }
  return names;
}

/// What sits or serves otherwise than the inventory's rails say: [{"hca", "pci", "gpu"}]; GPUs
/// count in the order of the bus, as NVML does.
std::vector<std::string> unlikeDeclared(const nlohmann::json& rails,
                                        const std::vector<PciDevice>& gpus,
                                        const std::vector<std::pair<std::string, PciDevice>>& nics,
                                        const Host& host) {
  std::vector<std::string> wrong;
  const auto present = host.names("sys/class/infiniband");
  for (const auto& rail : rails) {
    const auto hca = rail.value("hca", std::string()), pci = rail.value("pci", std::string());
    const auto nic = std::find_if(nics.begin(), nics.end(),
                                  [&hca](const auto& one) { return one.first == hca; });
    if (nic == nics.end()) {
      if (std::find(present.begin(), present.end(), hca) == present.end())
        wrong.push_back(
            fmt::format("{} is not there{}", hca, pci.empty() ? "" : ", declared at " + pci));
      continue;
    }
    if (!pci.empty() && nic->second.address != pci)
      wrong.push_back(fmt::format("{} sits at {}, declared at {}", hca, nic->second.address, pci));
    if (!rail.contains("gpu")) continue;
    const auto index = rail.at("gpu").get<std::size_t>();
    if (index >= gpus.size()) {
      wrong.push_back(
          fmt::format("{} is declared to serve GPU {}, there are {}", hca, index, gpus.size()));
    } else if (const auto names = nearest(gpus[index], nics); !names.contains(hca)) {
      wrong.push_back(fmt::format("{} is declared to serve GPU {} ({}), which is nearest to {}",
                                  hca, index, gpus[index].address, fmt::join(names, ", ")));
    }
  }
  return wrong;
}

/// "0-3,8" → 5. Nothing else than such a list: nullopt.
std::optional<int> countIn(std::string_view list) {
  int count = 0;
  while (!list.empty()) {
    const auto part = list.substr(0, list.find(','));
    const auto dash = part.find('-');
    const auto first = numberIn(part.substr(0, dash)),
               last = dash == std::string_view::npos ? first : numberIn(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    count += static_cast<int>(*last - *first) + 1;
    list.remove_prefix(std::min(part.size() + 1, list.size()));
  }
  return count;
}

}  // namespace

Verdict checkGpuAffinity(const nlohmann::json& params, const Host& host) {
  const auto gpus = gpusOnPci(host);
  const auto nics = rdmaOnPci(host);
  if (gpus.empty())
    return pass("no GPU on PCI that a NIC could be near to; gpu.count says whether one is missing");
  if (nics.empty())
    return pass(fmt::format(
        "{} GPUs; this node has no RDMA device on PCI that they could be near to", gpus.size()));
  auto wrong = unlikeDeclared(params.value("rails", nlohmann::json::array()), gpus, nics, host);
  std::set<int> nic_nodes;
  std::map<std::set<std::string>, std::vector<std::string>>
      sharing;  // NICs → GPUs that are nearest to just these
  std::set<std::string> used;
  nlohmann::json near = nlohmann::json::object();
  for (const auto& [name, nic] : nics) nic_nodes.insert(nic.numa_node);
  for (const auto& gpu : gpus) {
    if (gpu.numa_node >= 0 && !nic_nodes.contains(-1) && !nic_nodes.contains(gpu.numa_node))
      wrong.push_back(fmt::format(
          "GPU {} is at memory node {}, where no RDMA device is: its traffic crosses the sockets",
          gpu.address, gpu.numa_node));
    const auto names = nearest(gpu, nics);
    near[gpu.address] = names;
    sharing[names].push_back(gpu.address);
    used.insert(names.begin(), names.end());
  }
  if (gpus.size() == nics.size()) {  // a NIC a GPU: rails
    for (const auto& [names, sharers] : sharing)
      if (names.size() != sharers.size())
        wrong.push_back(fmt::format("{} GPUs ({}) are nearest to {} NICs ({})", sharers.size(),
                                    fmt::join(sharers, ", "), names.size(),
                                    fmt::join(names, ", ")));
    for (const auto& [name, nic] : nics)
      if (!used.contains(name))
        wrong.push_back(fmt::format("no GPU is near {} ({})", name, nic.address));
  }
  auto verdict =
      concluded(wrong, fmt::format("{} GPUs, each with RDMA devices of its own side", gpus.size()));
  verdict.values = {{"gpus", static_cast<double>(gpus.size())},
                    {"rdma_devices", static_cast<double>(nics.size())}};
  verdict.evidence = {{"nearest", std::move(near)}};
  return verdict;
}

Verdict checkSystemAcs(const nlohmann::json&, const Host& host) {
  std::set<std::string> bridges;
  auto ends = gpusOnPci(host);
  if (ends.empty()) return pass("no GPU whose traffic a bridge could turn back");
  for (auto& [name, nic] : rdmaOnPci(host)) ends.push_back(nic);
  for (const auto& end : ends)
    for (std::size_t i = 1; i + 1 < end.path.size(); ++i) bridges.insert(end.path[i]);
  std::vector<std::string> wrong;
  std::size_t read = 0;
  for (const auto& bridge : bridges) {
    const auto control = acsControl(host.text("sys/bus/pci/devices/" + bridge + "/config"));
    if (!control) return noData(fmt::format("{}: {}", bridge, control.error().str()));
    ++read;
    if (*control && **control & kRedirects)
      wrong.push_back(fmt::format("{} (ACS control {:#06x})", bridge, **control));
  }
  if (wrong.empty())
    return pass(fmt::format(
        "none of {} bridges above GPUs and NICs turns traffic between them back", read));
  return failed(fmt::format("{} bridges send traffic between GPUs and NICs up to the processor: {}",
                            wrong.size(), fmt::join(wrong, ", ")));
}

Verdict checkSystemCpus(const nlohmann::json& params, const Host& host) {
  const std::filesystem::path folder = "sys/devices/system/cpu";
  const auto present = countIn(host.line(folder / "present")),
             online = countIn(host.line(folder / "online"));
  if (!present || !online || *present == 0)
    return noData("sysfs does not say which processors there are");
  std::vector<std::string> wrong;
  if (*online != *present)
    wrong.push_back(fmt::format("{} of {} processors are online; offline: {}", *online, *present,
                                host.line(folder / "offline")));
  if (const int wanted = params.value("count", 0); wanted && *online != wanted)
    wrong.push_back(fmt::format("{} processors, {} expected", *online, wanted));
  std::map<std::string, int> microcode, of_socket;
  for (const auto& name : host.names(folder)) {
    if (!name.starts_with("cpu") || !numberIn(std::string_view(name).substr(3))) continue;
    if (const auto version = host.line(folder / name / "microcode/version"); !version.empty())
      ++microcode[version];
    if (const auto socket = host.line(folder / name / "topology/physical_package_id");
        !socket.empty())
      ++of_socket[socket];
  }
  if (microcode.size() > 1)
    wrong.push_back(
        fmt::format("processors have different microcode: {}", fmt::join(microcode, ", ")));
  for (const auto& [socket, count] : of_socket)
    if (count != of_socket.begin()->second)
      wrong.push_back(fmt::format("socket {} has {} processors, socket {} has {}", socket, count,
                                  of_socket.begin()->first, of_socket.begin()->second));
  auto verdict =
      concluded(wrong, fmt::format("{} processors on {} sockets, all online, one microcode",
                                   *online, std::max<std::size_t>(of_socket.size(), 1)));
  verdict.values = {{"processors", static_cast<double>(*online)}};
  return verdict;
}

}  // namespace muster::validate
