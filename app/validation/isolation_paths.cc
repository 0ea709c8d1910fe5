// SPDX-License-Identifier: Apache-2.0
#include "app/validation/isolation_paths.h"

#include <fmt/format.h>

#include <map>

namespace muster::app {
namespace {

namespace isolate = validate::isolate;

std::string hcaOf(const isolate::SiteNode& node, int rail) {
  return fmt::format("{} {}", node.name.str(), node.devices[static_cast<std::size_t>(rail)]);
}

Result<isolate::RailRoutes> railRoutes(const isolate::Site& site, const fabric::Routes& routes,
                                       int rail) {
  isolate::RailRoutes out;
  std::map<int, int> numbers;  // of switches: the fabric's → the rail's
  for (const auto& node : site.nodes) {
    const auto entry = routes.entry(hcaOf(node, rail));
    if (!entry)
      return fail(ErrorCode::Unavailable,
                  fmt::format("no HCA called '{}' is up on the fabric", hcaOf(node, rail)));
    out.entry.push_back(
        numbers.try_emplace(*entry, static_cast<int>(numbers.size())).first->second);
  }
  out.ways.resize(numbers.size());
  for (const auto& [entry, number] : numbers)
    for (const auto& node : site.nodes) {
      auto way = routes.from(entry, hcaOf(node, rail));
      if (!way)
        return fail(ErrorCode::Unavailable,
                    fmt::format("the switches' tables lead nowhere for '{}'", hcaOf(node, rail)));
      out.ways[static_cast<std::size_t>(number)].push_back(std::move(*way));
    }
  return out;
}

}  // namespace

Result<isolate::SiteRoutes> siteRoutes(const isolate::Site& site, const fabric::Routes& routes) {
  isolate::SiteRoutes out;
  for (const auto& cable : routes.cables()) out.cables.push_back(toString(cable));
  for (int rail = 0; rail < site.layout.rails; ++rail) {
    TRY(one, railRoutes(site, routes, rail));
    out.rails.push_back(std::move(one));
  }
  return out;
}

}  // namespace muster::app
