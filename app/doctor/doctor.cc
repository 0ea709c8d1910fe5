// SPDX-License-Identifier: Apache-2.0
#include "app/doctor/doctor.h"

#include "app/doctor/checks.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <ranges>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using enum DoctorVerdict;

constexpr std::size_t kErrorsNamed = 3;
constexpr std::uintmax_t kStateNeedsBytes = std::uintmax_t{1} << 30;
constexpr std::uintmax_t kCacheNeedsBytes = std::uintmax_t{20} << 30;

}  // namespace

std::string_view wordOf(DoctorVerdict verdict) {
  switch (verdict) {
    case Ok:
      return "ok";
    case Warning:
      return "warning";
    case Bad:
      return "bad";
  }
  return "bad";
}

std::vector<DoctorLine> examineHost(const Options& options, const DoctorRequest& request) {
  using namespace doctor;
  Lines out;
  std::error_code unknown;
  std::optional<inventory::Cluster> cluster;
  if (!fs::exists(options.inventory, unknown)) {
    out.push_back({"inventory", Bad, fmt::format("{} is not there", options.inventory.string()),
                   "muster does not know what the site should be", "muster init"});
  } else {
    auto loaded = loadDeclared(options);
    std::vector<std::string> errors;
    for (const auto& diagnostic : loaded.diagnostics.all())
      if (diagnostic.severity == Severity::Error) errors.push_back(diagnostic.str());
    cluster = std::move(loaded.cluster);
    if (cluster)
      ok(out, "inventory",
         fmt::format("{}: {} nodes", options.inventory.string(), cluster->nodes.size()));
    else
      out.push_back({"inventory", Bad,
                     fmt::format("{} has {} error{}: {}{}", options.inventory.string(),
                                 errors.size(), errors.size() == 1 ? "" : "s",
                                 fmt::join(errors | std::views::take(kErrorsNamed), "; "),
                                 errors.size() > kErrorsNamed ? "; …" : ""),
                     "nothing is done with it",
                     fmt::format("muster inventory check -f {}", options.inventory.string())});
  }
  lookAtPrograms(options, cluster ? &*cluster : nullptr, out);
  lookAtState(options, out);
  lookAtSigner(options, out);
  lookAtSpace("state space", options.state, kStateNeedsBytes,
              "journal and consoles grow; a full disk stops everything", out);
  lookAtSpace("cache space", options.cache, kCacheNeedsBytes,
              "an image with its sources takes several GiB", out);
  lookAtTime(out);
  lookAtKvm(out);
  if (cluster) lookAtSecrets(*cluster, out);
  if (request.besides) request.besides(cluster ? &*cluster : nullptr, out);
  if (!cluster) return out;
  lookAtFabric(*cluster, out);
  if (cluster->networks.empty()) return out;
  const auto& network = cluster->provisioning();
  const auto interface = lookAtAddress(network, out);
  lookAtPorts(options, network, out);
  if (request.without_network) return out;
  if (!interface.empty()) lookForDhcp(network, interface, out);
  lookAtBmcs(*cluster, out);
  return out;
}

}  // namespace muster::app
