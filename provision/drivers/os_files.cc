// SPDX-License-Identifier: Apache-2.0
#include "provision/drivers/os_files.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "inventory/model/drivers.h"
#include "inventory/model/package_archive.h"
#include "provision/facets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

constexpr std::string_view kHead = "# Written by muster for driver {}; changes are put back.\n";
constexpr int kHoldPriority = 1001;  ///< apt: also when that is a downgrade
constexpr std::size_t kDigestDigits = 12;
constexpr std::size_t kMaxKeyBytes = 40u << 10;

std::string head(const inventory::Driver& driver) { return fmt::format(kHead, driver.name); }

}  // namespace

std::map<std::string, std::string> osFiles(const inventory::Driver& driver) {
  std::map<std::string, std::string> files;
  if (!driver.module_options.empty()) {
    auto& text = files[fmt::format("etc/modprobe.d/muster-{}.conf", driver.name)] = head(driver);
    for (const auto& [module, options] : driver.module_options) {
      text += "options " + module;
      for (const auto& [key, value] : options) text += fmt::format(" {}={}", key, value);
      text += "\n";
    }
  }
  if (!driver.sysctl.empty()) {
    auto& text = files[fmt::format("etc/sysctl.d/90-muster-{}.conf", driver.name)] = head(driver);
    for (const auto& [key, value] : driver.sysctl) text += fmt::format("{} = {}\n", key, value);
  }
  auto arguments = driver.kernel_args;
  if (driver.host && !driver.host->crash_kernel.empty())
    arguments.push_back("crashkernel=" + driver.host->crash_kernel);
  if (driver.host && !driver.host->serial_console.empty())  // the last one is /dev/console
    arguments.push_back(
        fmt::format("console={},{}", driver.host->serial_console, driver.host->serial_baud));
  if (!arguments.empty())
    files[fmt::format("etc/muster/kernel-args.d/{}", driver.name)] =
        fmt::format("{}\n", fmt::join(arguments, " "));
  if (driver.host)
    files[fmt::format("{}/{}.json", wire::kHostSettingsFolder, driver.name)] =
        wire::toJson(*driver.host);
  std::string pins;
  for (const auto& package : driver.packages)
    if (const auto equals = package.find('='); equals != std::string::npos)
      pins += fmt::format("\nPackage: {}\nPin: version {}\nPin-Priority: {}\n",
                          package.substr(0, equals), package.substr(equals + 1), kHoldPriority);
  if (!pins.empty() && (!driver.archives.empty() || !files.empty()))
    files[fmt::format("etc/apt/preferences.d/muster-{}.pref", driver.name)] = head(driver) + pins;
  return files;
}

std::string aptSource(const std::string& driver, const inventory::PackageArchive& archive) {
  auto text = fmt::format("Types: deb\nURIs: {}\nSuites: {}\n", archive.url,
                          archive.suite.empty() ? "./" : archive.suite);
  if (!archive.components.empty())
    text += fmt::format("Components: {}\n", fmt::join(archive.components, " "));
  return text +
         fmt::format("Signed-By: /etc/apt/keyrings/muster-{}-{}.key\n", driver, archive.name);
}

std::string dnfSource(const std::string& driver, const inventory::PackageArchive& archive) {
  return fmt::format(
      "[muster-{0}-{1}]\nname=muster {0} "
      "{1}\nbaseurl={2}\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=0\ngpgkey=file:///etc/pki/rpm-gpg/"
      "muster-{0}-{1}.key\n",
      driver, archive.name, archive.url);
}

wire::DriverParams driverParams(const inventory::Driver& driver, const std::string& https_url,
                                const std::string& ca_pem) {
  wire::DriverParams params;
  params.name = driver.name;
  params.packages = driver.packages;
  params.modules = driver.modules;
  params.verify = probesOf(driver);
  params.files = osFiles(driver);
  params.services = driver.services;
  if (driver.host && !driver.host->serial_console.empty())
    params.services.push_back("serial-getty@" + driver.host->serial_console);
  params.kernel = driver.kernel;
  if (driver.build == inventory::ModuleBuild::Dkms) params.build = "dkms";
  for (const auto& archive : driver.archives) {
    const auto key = io::readFile(archive.key, kMaxKeyBytes);
    params.archives.push_back({archive.name, aptSource(driver.name, archive),
                               dnfSource(driver.name, archive),
                               key ? io::toBase64(*key) : std::string()});
  }
  if (!driver.repository.empty()) {
    params.repository_url = fmt::format("{}/repo/{}/", https_url, driver.name);
    params.repository_ca_pem = ca_pem;
  }
  return params;
}

std::string settingsDigest(const std::map<std::string, std::string>& files) {
  return io::sha256Hex(jsonText(nlohmann::json(files))).substr(0, kDigestDigits);
}

}  // namespace muster::provision
