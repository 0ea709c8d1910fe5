// SPDX-License-Identifier: Apache-2.0
#include "app/build_unit.h"

#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "provision/images/build_unit.h"

#include <fmt/format.h>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::app {
namespace {

constexpr const char* kBuildPlace = "/mnt";

/// In this process's own mount namespace only: programs of the build that give up root (apt, which
/// downloads as user _apt where it can) come to the tree, and no user of this host does.
Result<std::filesystem::path> mountForTheBuild(const std::filesystem::path& work) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      ::mount(work.c_str(), kBuildPlace, nullptr, MS_BIND, nullptr) != 0)
    return fail(ErrorCode::Internal, fmt::format("cannot mount {} on {}: {}", work.string(),
                                                 kBuildPlace, std::strerror(errno)));
  return std::filesystem::path(kBuildPlace);
}

}  // namespace

Result<void> serveBuild(const Options& options, int connection,
                        const std::filesystem::path& folder) {
  if (::geteuid() != 0)
    return fail(ErrorCode::Denied, "the build unit is root's: muster-build.socket starts it");
  const auto builder = provision::makePackageBuilder();
  const auto image = [&options](const std::string& name) -> Result<inventory::Image> {
    TRY(cluster, loadCluster(options));
    const auto found = cluster.images.find(name);
    if (found == cluster.images.end())
      return fail(ErrorCode::NotFound,
                  fmt::format("{} declares no image {}", options.inventory.string(), name));
    return found->second;
  };
  const auto ram_os = [&options]() -> Result<inventory::RamOsSpec> {
    TRY(cluster, loadCluster(options));
    return *cluster.ram_os;
  };
  return provision::serveBuildRequest(connection, folder, *builder, {image, ram_os},
                                      mountForTheBuild);
}

}  // namespace muster::app
