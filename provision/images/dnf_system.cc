// SPDX-License-Identifier: Apache-2.0
#include "provision/images/dnf_system.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "base/io/selinux.h"
#include "inventory/model/images.h"
#include "provision/images/apt_sources.h"
#include "provision/images/apt_system.h"
#include "provision/images/fetch/dnf_fetch.h"
#include "provision/images/fetch/proxy_environment.h"
#include "provision/images/image_import.h"
#include "provision/images/recipes.h"
#include "provision/images/system_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

namespace muster::provision {

namespace {

constexpr std::chrono::minutes kInstallLimit{30};
constexpr uid_t kRoot = 0;

}  // namespace

std::vector<std::string> dnfPackagesOf(const inventory::ImageBuild& build, bool ssh) {
  auto packages = recipeLines("node-dnf/packages");
  for (auto package : build.packages) {
    if (const auto equals = package.find('='); equals != std::string::npos) package[equals] = '-';
    packages.push_back(std::move(package));
  }
  if (ssh) packages.push_back("openssh-server");
  if (build.selinux == inventory::SelinuxMode::Enforcing)
    for (auto& package : recipeLines("node-dnf/packages-selinux"))
      packages.push_back(std::move(package));
  return packages;
}

namespace {

const char* wordOf(inventory::SelinuxMode mode) {
  switch (mode) {
    case inventory::SelinuxMode::Enforcing:
      return "enforcing";
    case inventory::SelinuxMode::Disabled:
      return "disabled";
    case inventory::SelinuxMode::Permissive:
      break;
  }
  return "permissive";
}

}  // namespace

Result<std::string> dnfConfiguration(const inventory::ImageBuild& build) {
  std::string text =
      "[main]\ngpgcheck=1\nlocalpkg_gpgcheck=1\ninstall_weak_deps=0\ntsflags=nodocs\nkeepcache="
      "0\nbest=1\nskip_if_unavailable=0\n";
  for (const auto& archive : build.archives) {
    TRY(key, archiveKey(archive));
    text += fmt::format("\n[{0}]\nname={0}\nbaseurl={1}\ngpgkey=file://{2}\nenabled=1\n",
                        archive.name, archive.url, key.string());
  }
  return text;
}

Result<void> installDnfSystem(DnfSystem system) {
  if (::geteuid() != 0)
    return fail(ErrorCode::Denied,
                "building images needs root (packages set owners); run it with sudo");
  TRY_OK(checkDnf(system.build.release));
  TRY(configuration, dnfConfiguration(system.build));
  const auto config = system.work / "dnf.conf";
  TRY_OK(io::writeFileAtomic(config, configuration));
  TRY_OK(writeRpmMacros(system.work));
  TRY_OK(io::makeDirs(system.root));
  const bool is_fetched = !system.fetch_socket.empty();
  if (is_fetched)
    TRY_OK(
        fetchDnfCache(system.fetch_socket, kRoot,
                      {configuration, system.build.release, system.packages, system.build.modules},
                      dnfCacheOf(system.root)));
  auto command = inOwnNamespaces({(system.recipes / "node-dnf/install.sh").string(),
                                  system.root.string(), config.string(), system.build.release});
  command.args.insert(command.args.end(), system.packages.begin(), system.packages.end());
  if (is_fetched)
    command.env["MUSTER_FETCHED"] = "yes";
  else
    command.env = proxyEnvironment();
  command.env["HOME"] = system.work.string();
  // The same packages are to give the same image: rpm (4.17 and later) writes its records with this
  // time, the packages' own scripts heed it for days of passwords, key stores and initrd. dnf hands
  // over its sets in the order of Python's hashes.
  command.env["SOURCE_DATE_EPOCH"] = std::to_string(kImageEpochSeconds);
  command.env["PYTHONHASHSEED"] = "0";
  if (!system.build.modules.empty())
    command.env["MUSTER_MODULES"] = fmt::format("{}", fmt::join(system.build.modules, " "));
  command.env["MUSTER_SELINUX"] = wordOf(system.build.selinux);
  command.timeout = kInstallLimit;
  if (auto done = io::runChecked(command); !done)
    return fail(
        std::move(done).error().within("building a system of release " + system.build.release));
  TRY_OK(linkKernel(system.root));
  auto labelled = io::labelTree(system.root);  // when nothing is written into it any more
  if (!labelled) return fail(std::move(labelled).error().within("labelling the system's files"));
  return {};
}

}  // namespace muster::provision
