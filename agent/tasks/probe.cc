// SPDX-License-Identifier: Apache-2.0
// Probes: what runs now, never what is merely installed or declared.
#include "agent/tasks/host_settings.h"
#include "agent/tasks/network_change.h"
#include "agent/tasks/node_service.h"
#include "agent/tasks/nvlink_probe.h"
#include "agent/tasks/os_settings.h"
#include "agent/tasks/package_manager.h"
#include "agent/tasks/parts.h"
#include "agent/tasks/roce_probe.h"
#include "agent/tasks/storage.h"
#include "agent/tasks/sysfs.h"
#include "agent/tasks/systemd.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "wire/task_params.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kProbeLimit{10};
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-_@:";

bool isName(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.front() != '-' &&
         text.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

/// The kernel's own names have underscores where file names may have hyphens.
std::string moduleState(const std::filesystem::path& root, std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  std::error_code error;
  return std::filesystem::exists(root / "sys/module" / name, error) ? "loaded" : "";
}

std::string rdmaDevices(const std::filesystem::path& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(root / "sys/class/infiniband", error))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  std::string joined;
  for (const auto& name : names) joined += (joined.empty() ? "" : ",") + name;
  return joined;
}

/// "mlx5_0=InfiniBand,mlx5_8=Ethernet": of each device's first port.
std::string rdmaLayers(const std::filesystem::path& root) {
  std::string joined;
  std::istringstream names(rdmaDevices(root));
  for (std::string name; std::getline(names, name, ',');) {
    const auto layer =
        io::readFile(root / "sys/class/infiniband" / name / "ports/1/link_layer", kMaxSysfsBytes);
    if (layer) joined += fmt::format("{}{}={}", joined.empty() ? "" : ",", name, trimmed(*layer));
  }
  return joined;
}

Task<std::string> packageVersion(TaskTools tools, std::string name) {
  std::vector<std::string> args = {"-W", "-f=${db:Status-Status} ${Version}", name};
  auto out = co_await runTool(tools, "dpkg-query", std::move(args), kProbeLimit);
  constexpr std::string_view kInstalled = "installed ";
  if (out)
    co_return out->starts_with(kInstalled) ? trimmed(out->substr(kInstalled.size()))
                                           : std::string();
  if (packageManager(tools.root) != PackageManager::Dnf) co_return std::string();
  std::vector<std::string> query = {"-q", "--qf", "%{VERSION}-%{RELEASE}", name};
  auto version = co_await runTool(tools, "rpm", std::move(query), kProbeLimit);
  co_return version ? trimmed(*version) : std::string();
}

std::string oneLine(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  auto text = io::readFile(path, kMaxSysfsBytes);
  return text ? trimmed(*text) : std::string();
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Of the module that is loaded; its checksum where it carries no version.
std::string loadedVersion(const std::filesystem::path& root, const std::string& name) {
  const auto folder = root / "sys/module" / underscored(name);
  const auto version = oneLine(folder / "version");
  return version.empty() ? oneLine(folder / "srcversion") : version;
}

Task<std::string> moduleFile(TaskTools tools, std::string name) {
  std::vector<std::string> args = {"-F", "filename", name};
  auto out = co_await runTool(tools, "modinfo", std::move(args), kProbeLimit);
  if (!out) co_return std::string();
  // DKMS installs to updates/dkms (Debian, Ubuntu) or extra (RHEL, where packages of modules use
  // extra/NAME).
  co_return out->find("/updates/dkms/") != std::string::npos ||
          out->find("/extra/" + name + ".ko") != std::string::npos
      ? "dkms"
      : "packaged";
}

/// Fabric Manager must be of the loaded driver's version exactly; "yes", or both versions.
Task<std::string> fabricManagerMatch(TaskTools tools) {
  std::vector<std::string> args = {"--version"};
  auto out = co_await runTool(tools, "nv-fabricmanager", std::move(args), kProbeLimit);
  if (!out) co_return std::string();
  const auto colon = out->rfind(':');
  auto manager = trimmed(colon == std::string::npos ? *out : out->substr(colon + 1));
  manager.erase(0, manager.find_first_not_of(' '));
  const auto driver = loadedVersion(tools.root, "nvidia");
  if (driver.empty()) co_return std::string();
  co_return manager == driver ? std::string("yes") : "no:" + manager + "/" + driver;
}

/// Of the first NIC that this driver drives.
std::string nicOf(const std::filesystem::path& root, const std::string& driver, bool firmware) {
  std::error_code error;
  for (const auto& net : std::filesystem::directory_iterator(root / "sys/class/net", error)) {
    const auto link = std::filesystem::read_symlink(net.path() / "device/driver", error);
    if (error || link.filename() != driver) continue;
    if (const auto says = nicDriver(net.path().filename().string()))
      return firmware ? says->firmware : says->version;
  }
  return {};
}

/// In a process of its own: a library that was replaced is loaded anew.
Task<std::string> nvmlDriver(TaskTools tools) {
  std::vector<std::string> args = {"tool", "nvml-driver"};
  auto out = co_await runTool(tools, tools.self.string(), std::move(args), kProbeLimit);
  co_return out ? trimmed(*out) : std::string();
}

Task<std::string> readProbe(TaskTools tools, std::string name) {
  if (name == "kernel") {
    auto release = io::readFile(tools.root / "proc/sys/kernel/osrelease", kMaxSysfsBytes);
    co_return release ? trimmed(*release) : std::string();
  }
  if (name == kNetworkService) co_return networkProbe(tools.root);
  if (name == "rdma.devices") co_return rdmaDevices(tools.root);
  if (name == "rdma.layers") co_return rdmaLayers(tools.root);
  if (name == "nvml.driver") {
    co_return co_await nvmlDriver(tools);
  }
  using Ask = Task<std::string> (*)(TaskTools);
  const std::array<std::pair<std::string_view, Ask>, 3> fabric_probes = {
      {{"imex.state", imexProbe},
       {"nvlink.domain", nvlinkDomainProbe},
       {"roce.marking", roceProbe}}};
  for (const auto& [probe, ask] : fabric_probes)
    if (name == probe) {
      co_return co_await ask(tools);
    }
  auto dot = name.find('.');
  std::string kind = name.substr(0, dot);
  std::string what = dot == std::string::npos ? "" : name.substr(dot + 1);
  if (!isName(what)) co_return std::string();
  if (constexpr std::string_view kPath = "path."; kind == "roce" && what.starts_with(kPath)) {
    co_return co_await rocePathProbe(tools, what.substr(kPath.size()));
  }
  if (kind == "module") co_return moduleState(tools.root, what);
  if (kind == "module-version") co_return loadedVersion(tools.root, what);
  if (kind == "storage") co_return storageProbe(tools.root, what);
  if (kind == "config") co_return settingsProbe(tools.root, what);
  if (kind == "host") {
    co_return co_await hostProbe(tools, what);
  }
  if (kind == "nic-driver" || kind == "nic-firmware")
    co_return nicOf(tools.root, what, kind == "nic-firmware");
  if (name == "fabricmanager.match") {
    co_return co_await fabricManagerMatch(tools);
  }
  if (kind == "module-file") {
    co_return co_await moduleFile(tools, what);
  }
  if (kind == "node-service") {
    co_return co_await nodeServiceProbe(tools, what);
  }
  if (kind == "service") {
    co_return co_await unitState(tools, what);
  }
  if (kind == "package") {
    co_return co_await packageVersion(tools, what);
  }
  co_return std::string();
}

}  // namespace

Task<std::map<std::string, std::string>> readProbes(TaskTools tools, std::set<std::string> names) {
  std::map<std::string, std::string> values;
  for (const auto& name : names) {
    auto value = co_await readProbe(tools, name);
    if (!value.empty()) values[name] = std::move(value);
  }
  co_return values;
}

Async<nlohmann::json> runProbe(TaskTools tools, nlohmann::json params) {
  CO_TRY(wanted, wire::parseProbeParams(jsonText(params)));
  auto values =
      co_await readProbes(tools, std::set<std::string>(wanted.probes.begin(), wanted.probes.end()));
  co_return nlohmann::json(values);
}

}  // namespace muster::agent
