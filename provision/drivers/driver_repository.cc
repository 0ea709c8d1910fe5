// SPDX-License-Identifier: Apache-2.0
// GET /repo/DRIVER/…: the flat apt repositories that drivers name, from the folders of the
// inventory. They are not signed and may be licensed: only nodes of the inventory get them, by the
// certificates that they enrolled for (docs/adr/0162).
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "provision/provision.h"

#include <fmt/format.h>

#include <set>

namespace muster::provision {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "/repo/";

/// The file below `root` that the rest of the path names; empty when there is none or when a link
/// leads out of the folder.
fs::path fileBelow(const fs::path& root, std::string_view rest) {
  std::error_code error;
  const auto base = fs::canonical(root, error);
  if (error) return {};
  const auto file = fs::canonical(base / fs::path(rest).relative_path(), error);
  if (error || !fs::is_regular_file(file, error)) return {};
  const auto inside = file.lexically_relative(base);
  return inside.empty() || *inside.begin() == ".." ? fs::path() : file;
}

Task<io::ServerResponse> serve(const std::map<std::string, fs::path>& folders,
                               io::ServerRequest request) {
  const auto path = request.path();
  const auto rest = std::string_view(path).substr(kPrefix.size());
  const auto slash = rest.find('/');
  const auto folder = slash == std::string_view::npos
                          ? folders.end()
                          : folders.find(std::string(rest.substr(0, slash)));
  const auto file =
      folder == folders.end() ? fs::path() : fileBelow(folder->second, rest.substr(slash + 1));
  if (file.empty())
    co_return io::ServerResponse::text(404, "no such file in a driver's repository\n");
  co_return io::ServerResponse::file({file});
}

}  // namespace

std::vector<io::Route> driverRepositoryRoutes(const inventory::Cluster& cluster) {
  std::map<std::string, fs::path> folders;
  for (const auto& [name, driver] : cluster.drivers) {
    if (!driver.repository.empty())
      folders[name] =
          driver.repository.is_absolute() ? driver.repository : cluster.folder / driver.repository;
  }
  auto nodes = std::make_shared<std::set<std::string>>();
  for (const auto& node : cluster.nodes) nodes->insert(node.name.str());
  const io::Admit admit = [nodes = std::shared_ptr<const std::set<std::string>>(std::move(nodes))](
                              const io::ServerRequest& head) -> io::Admission {
    if (nodes->contains(head.client_common_name)) return {};
    return {0, io::ServerResponse::text(403,
                                        "drivers' repositories are for nodes of the inventory, "
                                        "which show their certificate\n")};
  };
  auto shared = std::make_shared<const std::map<std::string, fs::path>>(std::move(folders));
  return {{"GET", std::string(kPrefix),
           [shared](io::ServerRequest request) { return serve(*shared, std::move(request)); },
           admit}};
}

}  // namespace muster::provision
