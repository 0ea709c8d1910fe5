// SPDX-License-Identifier: Apache-2.0
// The tables of drivers: packages and the system's configuration, as declared rows.
#include "inventory/model/drivers.h"
#include "inventory/model/package_archive.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/change_spec.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"
#include "inventory/schema/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::inventory {

namespace {

constexpr TextFormat kSysctl{"a sysctl key", "^[a-z0-9_]+([./][A-Za-z0-9_-]+)+$",
                             "vm.nr_hugepages"};
constexpr TextFormat kSetting{"a value on one line, without quotes",
                              R"(^[^\s"'\\]+( [^\s"'\\]+)*$)", "1024"};
constexpr TextFormat kParameter{"a module's parameter", "^[A-Za-z0-9_]+$",
                                "NVreg_EnableGpuFirmware"};
constexpr TextFormat kParameterValue{"a parameter's value without spaces and quotes",
                                     R"(^[^\s"'\\]+$)", "1"};
constexpr TextFormat kUnit{"a systemd service, without .service", "^[A-Za-z0-9@_.:-]+$",
                           "nvidia-persistenced"};
constexpr TextFormat kManagerKey{"a key of fabricmanager.cfg", "^[A-Z][A-Z0-9_]*$", "FABRIC_MODE"};
constexpr std::array<std::string_view, 2> kManagerPresets{"fabric-manager",
                                                          "fabric-manager-nvlink5"};
// Those of NVIDIA's guide and of the file in its packages; later releases add some.
constexpr std::array<std::string_view, 30> kManagerKeys = {"ABORT_CUDA_JOBS_ON_FM_EXIT",
                                                           "ACCESS_LINK_FAILURE_MODE",
                                                           "BIND_INTERFACE_IP",
                                                           "DAEMONIZE",
                                                           "DATABASE_PATH",
                                                           "ENABLE_LOCALFM",
                                                           "ENABLE_TOPOLOGY_VALIDATION",
                                                           "FABRIC_MODE",
                                                           "FABRIC_MODE_RESTART",
                                                           "FABRIC_NODE_CONFIG_FILE",
                                                           "FM_CMD_BIND_INTERFACE",
                                                           "FM_CMD_PORT_NUMBER",
                                                           "FM_CMD_UNIX_SOCKET_PATH",
                                                           "FM_SM_IPC_INTERFACE",
                                                           "FM_SM_MGMT_PORT_GUID",
                                                           "FM_STAY_RESIDENT_ON_FAILURES",
                                                           "GFM_WAIT_TIMEOUT",
                                                           "LOG_APPEND_TO_LOG",
                                                           "LOG_FILE_MAX_SIZE",
                                                           "LOG_FILE_NAME",
                                                           "LOG_LEVEL",
                                                           "LOG_MAX_ROTATE_COUNT",
                                                           "LOG_USE_SYSLOG",
                                                           "MULTI_NODE_TOPOLOGY",
                                                           "NVSWITCH_FAILURE_MODE",
                                                           "STARTING_TCP_PORT",
                                                           "STATE_FILE_NAME",
                                                           "TOPOLOGY_FILE_PATH",
                                                           "TRUNK_LINK_FAILURE_MODE",
                                                           "UNIX_SOCKET_PATH"};
constexpr TextFormat kArchiveUrl{
    "an http or https URL", R"(^https?://[^\s\[\]]+$)",
    "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/"};

std::vector<std::string_view> presetNames() {
  std::vector<std::string_view> names;
  for (const Preset& row : presets()) names.push_back(row.name);
  return names;
}

void checkArchive(PackageArchive& archive, const Value& map, Reader& reader) {
  std::error_code ignored;
  if (!std::filesystem::exists(archive.key, ignored))
    reader.warning(place(map, "key"), fmt::format("{} does not exist yet", archive.key.string()),
                   "it must be there before packages are installed");
  if (archive.suite.empty() && !archive.components.empty())
    reader.error(place(map, "components"), "components need a suite",
                 "add suite, or remove components for a flat archive");
}

ObjectSpec make_archiveSpec() {
  return Table<PackageArchive>(
             "package-archive", "package archive",
             "An archive of packages, for apt or dnf, with the key that signs it.")
      .required("url", &PackageArchive::url, text(kArchiveUrl), "Where it is.")
      .required("key", &PackageArchive::key, text(kPath),
                "The OpenPGP public key that signs it. An archive without a key is refused.")
      .optional("suite", &PackageArchive::suite, text(kWord),
                "apt's suite; absent: a flat archive. dnf does not read it.")
      .optional("components", &PackageArchive::components, listOf(text(kWord)), "apt's components.")
      .printsAlways()
      .check(checkArchive)
      .spec();
}
}  // namespace

MUSTER_SPEC(archiveSpec)

namespace {

/// NVIDIA's Fabric Manager starts only beside a driver of its very version: two pins that differ
/// can never run.
void checkFabricManager(const Driver& driver, const Value& map, Reader& reader) {
  std::string manager, of_driver, driver_package;
  for (const auto& package : driver.packages) {
    const auto equals = package.find('=');
    const auto name = package.substr(0, equals);
    const auto version =
        equals == std::string::npos ? std::string() : upstreamVersion(package.substr(equals + 1));
    if (name.find("fabricmanager") != std::string::npos ||
        name.find("fabric-manager") != std::string::npos) {
      if (version.empty())
        reader.error(
            place(map, "packages"),
            fmt::format(
                "{} has no pin: Fabric Manager runs only beside a driver of its own version", name),
            "write name=version, with the driver's version");
      manager = version;
    } else if (!version.empty() &&
               (name.starts_with("nvidia-driver") || name.starts_with("nvidia-open") ||
                name.starts_with("nvidia-kernel-"))) {
      of_driver = version;
      driver_package = name;
    }
  }
  if (!manager.empty() && !of_driver.empty() && manager != of_driver)
    reader.error(
        place(map, "packages"),
        fmt::format("Fabric Manager is pinned to {}, {} to {}", manager, driver_package, of_driver),
        "both must be of one version exactly");
}

/// A key that Fabric Manager does not know changes nothing, and nobody hears of it.
void checkManagerKeys(const Driver& driver, const Value& map, Reader& reader) {
  if (driver.fabric_manager.empty()) return;
  const Value& keys = place(map, "fabric_manager");
  if (std::find(kManagerPresets.begin(), kManagerPresets.end(), driver.preset) ==
      kManagerPresets.end())
    return reader.error(
        keys, fmt::format("the driver {} is not Fabric Manager's", driver.name),
        "give it preset: fabric-manager, or move the keys to the driver that has it");
  for (const auto& [key, value] : keys.entries)
    if (std::find(kManagerKeys.begin(), kManagerKeys.end(), key.text) == kManagerKeys.end())
      reader.warning(key,
                     fmt::format("Fabric Manager's guide has no key \"{}\"", shorten(key.text)),
                     didYouMean(key.text, {kManagerKeys.begin(), kManagerKeys.end()}));
}

void checkDriver(Driver& driver, const Value& map, Reader& reader) {
  if (const auto* preset = findPreset(driver.preset)) applyPreset(driver, *preset);
  checkFabricManager(driver, map, reader);
  checkManagerKeys(driver, map, reader);
  checkCrashKernel(driver, map, reader);
  for (const auto& [probe, glob] : impliedProbes(driver))
    if (!driver.verify.empty() || driver.packages.empty()) driver.verify.emplace(probe, glob);
  const bool settings = !driver.sysctl.empty() || !driver.kernel_args.empty() ||
                        !driver.module_options.empty() || driver.host;  // proven by what they are
  if (driver.verify.empty() && !settings)
    reader.warning(
        map,
        fmt::format(
            "driver {} has no `verify`: whether it runs after its installation is not checked",
            driver.name),
        "add verify: {PROBE: GLOB}");
}

ObjectSpec make_driverSpec() {
  return Table<Driver>("driver", "driver",
                       "Packages and settings that a node needs beyond its image, and what must be "
                       "running afterwards.")
      .custom("preset", false, choice(presetNames()),
              "A row of known settings that the keys below add to; docs/drivers.md lists them.",
              [](Driver& driver, const Value& value, const Shape& shape, Reader& reader) {
                if (const auto index = readChoice(value, shape, reader))
                  driver.preset = std::string(shape.choices[*index]);
              })
      .optional("packages", &Driver::packages, listOf(text(kPackage)),
                "Packages, pinned by name=version; apt's or dnf's, as the image has it.")
      .custom("repository", false, text(kPath),
              "A folder with a flat apt repository (a Packages file), served to the nodes.",
              [](Driver& driver, const Value& value, const Shape& shape, Reader& reader) {
                readInto(driver.repository, value, shape, reader);
                std::error_code ignored;
                if (!driver.repository.empty() &&
                    !std::filesystem::is_directory(driver.repository, ignored))
                  reader.warning(
                      value,
                      fmt::format("the folder {} does not exist yet", driver.repository.string()),
                      "it must be there before drivers are installed");
              })
      .prints(&Driver::repository)
      .optional("archives", &Driver::archives, mapOf(object(archiveSpec), kEntryName),
                "Signed archives that the packages come from.")
      .optional("build", &Driver::build, choice({"packaged", "dkms", "precompiled"}),
                "Where kernel modules come from. dkms: built on the node for the kernel that runs. "
                "precompiled: from a package, never built there.")
      .optional(
          "kernel", &Driver::kernel, text(kGlob),
          "The kernel release that must run; its packages are held so that no update moves it.")
      .optional("modules", &Driver::modules, listOf(text(kModule)),
                "Kernel modules that must be loaded afterwards.")
      .optional("module_options", &Driver::module_options,
                mapOf(mapOf(text(kParameterValue), kParameter), kModule),
                "Parameters of modules, in a file of modprobe.d.")
      .optional("sysctl", &Driver::sysctl, mapOf(text(kSetting), kSysctl),
                "Kernel settings, in a file of sysctl.d.")
      .optional("kernel_args", &Driver::kernel_args, listOf(text(kKernelArgument)),
                "Arguments of the installed system's kernel.")
      .optional("services", &Driver::services, listOf(text(kUnit)),
                "systemd services that must be enabled and active.")
      .optional("fabric_manager", &Driver::fabric_manager, mapOf(text(kSetting), kManagerKey),
                "Keys of fabricmanager.cfg and their values, for the preset fabric-manager; all "
                "others stay as packaged. A change restarts "
                "Fabric Manager, on a drained node.")
      .optional("host", &Driver::host, object(hostSettingsSpec),
                "Clock, certificate authorities, proxies, users, crash kernel, serial console.")
      .optional("verify", &Driver::verify, mapOf(text(kGlob), kProbe),
                "What must be *running*: probe to glob of its version. Probes: nvml.driver, "
                "kernel, rdma.devices, module.NAME (its value: "
                "loaded), module-version.NAME, module-file.NAME, nic-driver.DRIVER, "
                "nic-firmware.DRIVER, service.NAME, fabricmanager.match, "
                "package.NAME.")
      .printsAlways({"packages", "repository", "modules", "verify"})
      .check(checkDriver)
      .spec();
}

}  // namespace

MUSTER_SPEC(driverSpec)

}  // namespace muster::inventory
