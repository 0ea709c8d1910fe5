// SPDX-License-Identifier: Apache-2.0
#include "app/build_unit.h"

#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "provision/images/build_unit.h"

#include <fmt/format.h>

#include <unistd.h>

namespace muster::app {

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
  return provision::serveBuildRequest(connection, folder, *builder, {image, ram_os});
}

}  // namespace muster::app
