// SPDX-License-Identifier: Apache-2.0
// Inspect: what this machine is, from sysfs and DMI. Disks are told by serial and WWN, never by
// their place in /dev.
#include "agent/tasks/lldp.h"
#include "agent/tasks/parts.h"
#include "agent/tasks/sysfs.h"
#include "agent/tasks/tasks.h"
#include "base/architecture.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/task_params.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSectorBytes =
    512;  ///< of /sys/block/*/size, whatever the device's own sector is
constexpr std::chrono::seconds kGpuLimit{30};
constexpr std::string_view kNotDisks[] = {"loop", "ram", "zram", "sr",      "fd",
                                          "dm-",  "md",  "nbd",  "mtdblock"};
struct GpuMark {
  std::string_view vendor, device_class;
};
/// VGA and 3D controllers; AMD's Instinct are display controllers (MI200) or processing
/// accelerators (MI300), as NVIDIA's cards never are.
constexpr GpuMark kGpuMarks[] = {{"0x10de", "0x0300"}, {"0x10de", "0x0302"}, {"0x1002", "0x0300"},
                                 {"0x1002", "0x0302"}, {"0x1002", "0x0380"}, {"0x1002", "0x1200"}};

std::string trimmed(std::string text) {
  auto bad = [](unsigned char c) { return std::isspace(c) || c == 0; };
  while (!text.empty() && bad(static_cast<unsigned char>(text.back()))) text.pop_back();
  std::size_t begin = 0;
  while (begin < text.size() && bad(static_cast<unsigned char>(text[begin]))) ++begin;
  return text.substr(begin, wire::kMaxNameBytes);
}

/// One line of sysfs; empty when it is not there.
std::string line(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  auto text = io::readFile(path, kMaxSysfsBytes);
  return text ? trimmed(*text) : std::string();
}

std::string driverOf(const fs::path& device) {
  std::error_code error;
  auto target = fs::read_symlink(device / "driver", error);
  return error ? std::string() : target.filename().string();
}

/// "0-3,8" → 5
int countCpus(const std::string& online) {
  int count = 0;
  std::istringstream ranges(online);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0, last = 0;
    int read = std::sscanf(range.c_str(), "%d-%d", &first, &last);
    if (read == 1) ++count;
    if (read == 2 && last >= first) count += last - first + 1;
  }
  return count;
}

std::uint64_t memoryBytes(const fs::path& root) {
  std::ifstream meminfo(root / "proc/meminfo");
  std::string key, unit;
  std::uint64_t kib = 0;
  while (meminfo >> key >> kib >> unit) {
    if (key == "MemTotal:") return kib * 1024;
  }
  return 0;
}

/// SCSI and SATA tell their serial in page 0x80: four bytes of header, then text.
std::string serialOf(const fs::path& block) {
  for (const char* place : {"serial", "device/serial"}) {
    if (auto text = line(block / place); !text.empty()) return text;
  }
  std::error_code error;
  if (!fs::exists(block / "device/vpd_pg80", error)) return {};
  auto page = io::readFile(block / "device/vpd_pg80", kMaxSysfsBytes);
  return page && page->size() > 4 ? trimmed(page->substr(4)) : std::string();
}

std::string firstOf(const fs::path& folder, std::initializer_list<const char*> places) {
  for (const char* place : places) {
    if (auto text = line(folder / place); !text.empty()) return text;
  }
  return {};
}

bool isDisk(const fs::path& block) {
  auto name = block.filename().string();
  for (auto prefix : kNotDisks) {
    if (name.starts_with(prefix)) return false;
  }
  std::error_code error;
  bool real = fs::exists(block / "device", error);  // what stacks on other devices has none
  return real && line(block / "removable") != "1" && line(block / "size") != "0";
}

DiskContent contentOf(const TaskTools& tools, const fs::path& device) {
  constexpr auto kOther = wire::DiskUse::Other;
  if (!tools.disk_content) return {kOther, "unknown: nothing can look at it"};
  auto content = tools.disk_content(device);
  if (!content)
    return {kOther, "unreadable: " + content.error().str().substr(0, wire::kMaxNameBytes / 2)};
  if (content->text.empty()) return {kOther, "unknown: no answer"};
  return {content->use, content->text.substr(0, wire::kMaxNameBytes / 2)};
}

std::vector<wire::Disk> disks(const TaskTools& tools) {
  std::vector<wire::Disk> found;
  for (const auto& block : childrenOf(tools.root / "sys/block")) {
    if (!isDisk(block) || found.size() >= wire::kMaxDevices) continue;
    wire::Disk disk;
    disk.path = "/dev/" + block.filename().string();
    disk.serial = serialOf(block);
    disk.wwn = firstOf(block, {"wwid", "device/wwid"});
    disk.model = firstOf(block, {"device/model"});
    disk.size_bytes = std::strtoull(line(block / "size").c_str(), nullptr, 10) * kSectorBytes;
    auto content = contentOf(tools, tools.root / "dev" / block.filename());
    disk.content = std::move(content.text);
    disk.use = content.use;
    found.push_back(std::move(disk));
  }
  return found;
}

std::vector<wire::Nic> nics(const fs::path& root) {
  std::vector<wire::Nic> found;
  std::error_code error;
  for (const auto& net : childrenOf(root / "sys/class/net")) {
    if (!fs::exists(net / "device", error) || found.size() >= wire::kMaxDevices)
      continue;  // only hardware
    found.push_back({net.filename().string(), line(net / "address"), driverOf(net / "device")});
  }
  return found;
}

/// Without a driver the PCI bus still tells that there are GPUs, and where.
std::vector<wire::Gpu> gpusOnPci(const fs::path& root) {
  std::vector<wire::Gpu> found;
  for (const auto& device : childrenOf(root / "sys/bus/pci/devices")) {
    auto vendor = line(device / "vendor");
    auto kind = line(device / "class").substr(0, 6);
    const bool gpu = std::ranges::any_of(kGpuMarks, [&](const GpuMark& mark) {
      return mark.vendor == vendor && mark.device_class == kind;
    });
    if (!gpu || found.size() >= wire::kMaxDevices) continue;
    wire::Gpu each;
    each.model = "PCI " + vendor.substr(2) + ":" + line(device / "device").substr(0, 6);
    each.pci = device.filename().string();
    found.push_back(std::move(each));
  }
  return found;
}

wire::Hardware readMachine(const TaskTools& tools) {
  auto dmi = tools.root / "sys/class/dmi/id";
  wire::Hardware hardware;
  hardware.manufacturer = line(dmi / "sys_vendor");
  hardware.product = line(dmi / "product_name");
  hardware.serial = line(dmi / "product_serial");
  hardware.uuid = line(dmi / "product_uuid");
  hardware.cpus = countCpus(line(tools.root / "sys/devices/system/cpu/online"));
  hardware.memory_bytes = memoryBytes(tools.root);
  hardware.disks = disks(tools);
  hardware.nics = nics(tools.root);
  for (const auto& device : childrenOf(tools.root / "sys/class/infiniband"))
    hardware.rdma_devices.push_back(device.filename().string());
  hardware.gpus = gpusOnPci(tools.root);
  hardware.parts = partsOf(tools.root);
  hardware.arch = traitsOf(kBuiltFor).name;
  return hardware;
}

}  // namespace

Async<wire::Hardware> inspect(TaskTools tools) {
  auto context = std::make_shared<TaskContext>("inspect", kGpuLimit);
  std::function<Result<wire::Hardware>()> look = [tools] {
    return Result<wire::Hardware>(readMachine(tools));
  };
  CO_TRY(hardware, co_await offloadFor<wire::Hardware>(tools.workers, context, std::move(look)));
  // NVML knows more than the bus (model, serial, VBIOS); it runs apart, since a vendor's library
  // may crash.
  std::vector<std::string> args = {"tool", "gpus"};
  auto listed = co_await runTool(tools, tools.self.string(), std::move(args), kGpuLimit);
  if (listed) {
    auto described = wire::parseHardware(*listed);
    if (described && !described->gpus.empty()) hardware.gpus = described->gpus;
  }
  co_return hardware;
}

namespace {

/// lldpd knows at once; without it frames are waited for.
Async<std::vector<wire::Neighbour>> neighbours(TaskTools tools, std::chrono::seconds limit) {
  std::vector<std::string> args = {"-f", "json"};
  if (auto output = co_await runTool(tools, "lldpctl", std::move(args), kGpuLimit)) {
    auto known = parseLldpctl(*output);
    if (known && !known->empty()) co_return known;
  }
  auto context = std::make_shared<TaskContext>("lldp", limit + kGpuLimit);
  std::function<Result<std::vector<wire::Neighbour>>()> listen = [root = tools.root, limit] {
    return listenLldp(root, limit);
  };
  co_return co_await offloadFor<std::vector<wire::Neighbour>>(tools.workers, context,
                                                              std::move(listen));
}

}  // namespace

Async<nlohmann::json> runInspect(TaskTools tools, nlohmann::json params) {
  CO_TRY(wanted, wire::parseInspectParams(jsonText(params)));
  CO_TRY(hardware, co_await inspect(tools));
  if (wanted.lldp.count() > 0) {
    CO_TRY(heard, co_await neighbours(tools, wanted.lldp));
    hardware.neighbours = std::move(heard);
  }
  co_return jsonOrNone(toJson(hardware), kKeptJson);
}

}  // namespace muster::agent
