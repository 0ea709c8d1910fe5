// SPDX-License-Identifier: Apache-2.0
#include "base/io/http_routes.h"

#include <algorithm>
#include <tuple>

namespace muster::io {
namespace {

std::string_view takeSegment(std::string_view& rest) {
  const auto end = std::min(rest.find('/', 1), rest.size());
  const auto segment = rest.substr(0, end);
  rest.remove_prefix(end);
  return segment;
}

bool isTemplate(const Route& route) { return route.path.find('{') != std::string::npos; }

}  // namespace

bool matchesTemplate(std::string_view path_template, std::string_view path,
                     std::map<std::string, std::string>& parameters) {
  std::map<std::string, std::string> found;
  while (!path_template.empty() && !path.empty()) {
    const auto wanted = takeSegment(path_template), given = takeSegment(path);
    if (wanted.starts_with("/{") && wanted.ends_with('}')) {
      if (given.size() < 2 || given.front() != '/') return false;
      found.emplace(wanted.substr(2, wanted.size() - 3), given.substr(1));
    } else if (wanted != given) {
      return false;
    }
  }
  if (!path_template.empty() || !path.empty()) return false;
  parameters = std::move(found);
  return true;
}

void Routes::add(std::vector<Route> routes) {
  for (auto& route : routes) routes_.push_back(std::make_shared<const Route>(std::move(route)));
}

Routes::Match Routes::find(const std::string& method, const std::string& path) const {
  enum Kind { Above, Template, Exact };
  using Rank = std::tuple<Kind, std::size_t, bool>;
  Match best;
  Rank best_rank;
  for (const auto& route : routes_) {
    Kind kind = Exact;
    std::map<std::string, std::string> parameters;
    if (isTemplate(*route)) {
      if (!matchesTemplate(route->path, path, parameters)) continue;
      kind = Template;
    } else if (path != route->path) {
      if (!route->path.ends_with('/') || !path.starts_with(route->path)) continue;
      kind = Above;
    }
    best.path_known = true;
    const bool exact_method =
        route->method == method || (method == "HEAD" && route->method == "GET");
    if (!exact_method && route->method != "*") continue;
    const Rank rank(kind, route->path.size(), exact_method);
    if (best.route && rank <= best_rank) continue;
    best.route = route;
    best.parameters = std::move(parameters);
    best_rank = rank;
  }
  return best;
}

}  // namespace muster::io
