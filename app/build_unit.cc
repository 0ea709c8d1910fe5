// SPDX-License-Identifier: Apache-2.0
#include "app/build_unit.h"

#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/without_secrets.h"
#include "provision/images/build_unit.h"

#include <fmt/format.h>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

namespace muster::app {
namespace {

constexpr const char* kBuildPlace = "/mnt";
constexpr const char* kAptMethods[] = {"/usr/lib/apt/methods/http", "/usr/lib/apt/methods/https"};

Result<void> mountOver(const std::filesystem::path& what, const std::filesystem::path& where) {
  if (::mount(what.c_str(), where.c_str(), nullptr, MS_BIND, nullptr) == 0) return {};
  return fail(ErrorCode::Internal, fmt::format("cannot mount {} on {}: {}", what.string(),
                                               where.string(), std::strerror(errno)));
}

/// In this process's own mount namespace only: programs of the build that give up root (apt, which
/// downloads as user _apt where it can) come to the tree, and no user of this host does.
/// Where this unit has no network, apt's methods give way to those that ask the fetch unit.
Result<std::filesystem::path> mountForTheBuild(const std::filesystem::path& work, bool fetches) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return fail(ErrorCode::Internal,
                fmt::format("cannot have mounts of its own: {}", std::strerror(errno)));
  TRY_OK(mountOver(work, kBuildPlace));
  if (fetches) return std::filesystem::path(kBuildPlace);
  const auto own = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-fetch";
  std::set<std::filesystem::path> programs;  // https is a link to http, or was a program
  for (const auto* method : kAptMethods) {
    std::error_code error;
    const auto program = std::filesystem::canonical(method, error);
    if (!error) programs.insert(program);
  }
  for (const auto& program : programs) TRY_OK(mountOver(own, program));
  return std::filesystem::path(kBuildPlace);
}

/// As declared. Whoever asked has read it and was told its problems: here the first one is enough.
Result<inventory::Cluster> declared(const Options& options) {
  auto loaded = inventory::loadWithoutSecrets(options.inventory);
  if (loaded.cluster) return std::move(*loaded.cluster);
  for (const auto& diagnostic : loaded.diagnostics.all())
    if (diagnostic.severity == Severity::Error)
      return fail(ErrorCode::InvalidInput, diagnostic.str());
  return fail(ErrorCode::InvalidInput,
              fmt::format("{} cannot be read", options.inventory.string()));
}

}  // namespace

Result<void> serveBuild(const Options& options, int connection, const std::filesystem::path& folder,
                        const std::filesystem::path& fetch_socket) {
  if (::geteuid() != 0)
    return fail(ErrorCode::Denied, "the build unit is root's: muster-build.socket starts it");
  const auto builder = provision::makePackageBuilder(fetch_socket);
  const auto image = [&options](const std::string& name) -> Result<inventory::Image> {
    TRY(cluster, declared(options));
    const auto found = cluster.images.find(name);
    if (found == cluster.images.end())
      return fail(ErrorCode::NotFound,
                  fmt::format("{} declares no image {}", options.inventory.string(), name));
    return found->second;
  };
  const auto ram_os = [&options]() -> Result<inventory::RamOsSpec> {
    TRY(cluster, declared(options));
    return *cluster.ram_os;
  };
  const auto way = [fetches = fetch_socket.empty()](const std::filesystem::path& work) {
    return mountForTheBuild(work, fetches);
  };
  return provision::serveBuildRequest(connection, folder, *builder, {image, ram_os}, way);
}

}  // namespace muster::app
