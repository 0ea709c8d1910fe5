// SPDX-License-Identifier: Apache-2.0
// Every GPU, RDMA NIC and NVMe disk on as many lanes, and as fast, as it and its slot can be; no
// PCIe error that could not be corrected. Source of the files: Linux' documentation of
// sysfs-bus-pci and sysfs-bus-pci-devices-aer_stats.
#include "validate/checks/check_row.h"
#include "validate/checks/pci.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace muster::validate {
namespace {

constexpr std::size_t kFewAlike =
    2;  ///< so many others of a model have more lanes before a slot is called the wrong one

struct Link {
  PciDevice device;
  std::string name, model;  ///< "NIC mlx5_0"; vendor and device
  bool rests = false;  ///< it lowers its speed when it has nothing to do: only a load could tell
  std::optional<double> lanes, own_lanes, gigatransfers, own_gigatransfers;
  std::optional<double> slot_lanes, slot_gigatransfers;
};

std::string folderOf(const std::string& address) { return "sys/bus/pci/devices/" + address + "/"; }

/// "32.0 GT/s PCIe"; "Unknown" and what is not there: nothing.
std::optional<double> speedIn(const std::string& text) {
  const auto end = text.find(' ');
  return end == std::string::npos || !text.substr(end + 1).starts_with("GT/s")
             ? std::nullopt
             : numberIn(std::string_view(text).substr(0, end));
}
std::optional<double> lanesIn(const std::string& text) {
  const auto lanes = numberIn(text);
  return lanes && *lanes > 0 && *lanes < 64
             ? lanes
             : std::nullopt;  // 0 and 255: no link, as inside of a chip
}

Link linkOf(const Host& host, std::string name, PciDevice device, bool rests) {
  Link link{std::move(device), std::move(name), {}, rests, {}, {}, {}, {}, {}, {}};
  const auto own = folderOf(link.device.address);
  link.model = host.line(own + "vendor") + " " + host.line(own + "device");
  link.lanes = lanesIn(host.line(own + "current_link_width")),
  link.own_lanes = lanesIn(host.line(own + "max_link_width"));
  link.gigatransfers = speedIn(host.line(own + "current_link_speed")),
  link.own_gigatransfers = speedIn(host.line(own + "max_link_speed"));
  if (link.device.path.size() > 2) {
    const auto slot = folderOf(link.device.path[link.device.path.size() - 2]);
    link.slot_lanes = lanesIn(host.line(slot + "max_link_width")),
    link.slot_gigatransfers = speedIn(host.line(slot + "max_link_speed"));
  }
  return link;
}

std::vector<Link> linksOf(const Host& host) {
  std::vector<Link> links;
  for (auto& gpu : gpusOnPci(host)) links.push_back(linkOf(host, "GPU " + gpu.address, gpu, true));
  for (auto& [name, nic] : rdmaOnPci(host))
    links.push_back(linkOf(host, fmt::format("NIC {} ({})", name, nic.address), nic, false));
  for (auto& [name, disk] : nvmeOnPci(host))
    links.push_back(linkOf(host, fmt::format("disk {} ({})", name, disk.address), disk, false));
  return links;
}

double reachable(const std::optional<double>& own, const std::optional<double>& slot) {
  return slot ? std::min(*own, *slot) : *own;
}

/// "TOTAL_ERR_FATAL 3" → 3; nullopt: this kernel or bridge counts none.
std::optional<double> errorsIn(const std::string& text) {
  const auto at = text.find("TOTAL_ERR_");
  if (at == std::string::npos) return std::nullopt;
  const auto space = text.find(' ', at);
  return space == std::string::npos ? std::nullopt
                                    : numberIn(std::string_view(text).substr(
                                          space + 1, text.find_first_of("\n", space) - space - 1));
}

void evaluate(const Host& host, const Link& link, std::vector<std::string>& wrong) {
  if (const double lanes = reachable(link.own_lanes, link.slot_lanes); *link.lanes < lanes)
    wrong.push_back(fmt::format("{} runs on {} of {} lanes", link.name, *link.lanes, lanes));
  if (!link.rests && link.gigatransfers && link.own_gigatransfers)
    if (const double speed = reachable(link.own_gigatransfers, link.slot_gigatransfers);
        *link.gigatransfers < speed)
      wrong.push_back(
          fmt::format("{} runs at {} of {} GT/s", link.name, *link.gigatransfers, speed));
  for (const char* kind : {"fatal", "nonfatal"})
    if (const auto errors =
            errorsIn(host.text(folderOf(link.device.address) + "aer_dev_" + kind)).value_or(0);
        errors > 0)
      wrong.push_back(fmt::format("{} counts {} {} PCIe errors", link.name, errors, kind));
}

/// A slot with fewer lanes than those of most others of its model.
void compare(const std::vector<Link>& links, std::vector<std::string>& wrong) {
  std::map<std::string, std::vector<const Link*>> alike;
  for (const auto& link : links) alike[link.model].push_back(&link);
  for (const auto& [model, of_model] : alike) {
    double most = 0;
    for (const auto* link : of_model)
      most = std::max(most, reachable(link->own_lanes, link->slot_lanes));
    const auto full = std::count_if(of_model.begin(), of_model.end(), [most](const auto* link) {
      return reachable(link->own_lanes, link->slot_lanes) == most;
    });
    if (static_cast<std::size_t>(full) < kFewAlike ||
        2 * static_cast<std::size_t>(full) <= of_model.size())
      continue;
    for (const auto* link : of_model)
      if (const double lanes = reachable(link->own_lanes, link->slot_lanes); lanes < most)
        wrong.push_back(fmt::format("{} sits in a slot of {} lanes, others of its model have {}",
                                    link->name, lanes, most));
  }
}

}  // namespace

Verdict checkSystemPcie(const nlohmann::json&, const Host& host) {
  const auto links = linksOf(host);
  if (links.empty())
    return pass(
        "no GPU, RDMA NIC or NVMe disk on PCI; gpu.count and rdma.count say whether one is "
        "missing");
  std::vector<std::string> wrong, silent;
  std::vector<Link> told;
  nlohmann::json seen = nlohmann::json::array();
  for (const auto& link : links) {
    if (!link.lanes || !link.own_lanes) {
      silent.push_back(link.name);
      continue;
    }
    told.push_back(link);
    seen.push_back({{"device", link.name},
                    {"lanes", *link.lanes},
                    {"gigatransfers_per_s", link.gigatransfers.value_or(0)}});
    evaluate(host, link, wrong);
  }
  compare(told, wrong);
  Verdict verdict = pass(fmt::format("{} PCIe links as wide and fast as they can be", told.size()));
  if (!wrong.empty())
    verdict = failed(fmt::format("{}", fmt::join(wrong, "; ")));
  else if (!silent.empty())
    verdict = noData(fmt::format("the kernel reports no PCIe link of {}", fmt::join(silent, ", ")));
  verdict.values = {{"pcie_links", static_cast<double>(told.size())}};
  verdict.evidence = {{"links", std::move(seen)}};
  return verdict;
}

}  // namespace muster::validate
