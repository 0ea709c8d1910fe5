// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/routes.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::validate::isolate {

std::vector<int> SiteRoutes::between(int a, int b, int rail) const {
  const auto& own = rails[static_cast<std::size_t>(rail)];
  const auto way = [&own](int from, int to) -> const std::vector<int>& {
    return own.ways[static_cast<std::size_t>(own.entry[static_cast<std::size_t>(from)])]
                   [static_cast<std::size_t>(to)];
  };
  auto out = way(a, b);
  for (const int cable : way(b, a))
    if (std::find(out.begin(), out.end(), cable) == out.end()) out.push_back(cable);
  return out;
}

bool SiteRoutes::fit(std::size_t nodes, int rails_of_site) const {
  const auto below = [](int index, std::size_t size) {
    return index >= 0 && static_cast<std::size_t>(index) < size;
  };
  const auto whole = [&](const RailRoutes& rail) {
    return rail.entry.size() == nodes &&
           std::all_of(rail.entry.begin(), rail.entry.end(),
                       [&](int at) { return below(at, rail.ways.size()); }) &&
           std::all_of(rail.ways.begin(), rail.ways.end(), [&](const auto& ways) {
             return ways.size() == nodes &&
                    std::all_of(ways.begin(), ways.end(), [&](const auto& way) {
                      return std::all_of(way.begin(), way.end(),
                                         [&](int cable) { return below(cable, cables.size()); });
                    });
           });
  };
  return rails.size() == static_cast<std::size_t>(rails_of_site) &&
         std::all_of(rails.begin(), rails.end(), whole);
}

nlohmann::json toJson(const SiteRoutes& routes) {
  auto rails = nlohmann::json::array();
  for (const auto& rail : routes.rails)
    rails.push_back({{"entry", rail.entry}, {"ways", rail.ways}});
  return {{"cables", routes.cables}, {"rails", std::move(rails)}};
}

SiteRoutes routesFromJson(const nlohmann::json& json) {
  SiteRoutes routes;
  routes.cables = json.at("cables").get<std::vector<std::string>>();
  for (const auto& rail : json.at("rails"))
    routes.rails.push_back({rail.at("entry").get<std::vector<int>>(),
                            rail.at("ways").get<std::vector<std::vector<std::vector<int>>>>()});
  return routes;
}

}  // namespace muster::validate::isolate
