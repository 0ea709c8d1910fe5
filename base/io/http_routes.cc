// SPDX-License-Identifier: Apache-2.0
#include "base/io/http_routes.h"

namespace muster::io {

void Routes::add(std::vector<Route> routes) {
  for (auto& route : routes) routes_.push_back(std::make_shared<const Route>(std::move(route)));
}

Routes::Match Routes::find(const std::string& method, const std::string& path) const {
  Match best;
  std::size_t best_length = 0;
  bool best_exact_method = false;
  for (const auto& route : routes_) {
    const bool below =
        !route->path.empty() && route->path.back() == '/' && path.starts_with(route->path);
    if (path != route->path && !below) continue;
    best.path_known = true;
    const bool exact_method =
        route->method == method || (method == "HEAD" && route->method == "GET");
    if (!exact_method && route->method != "*") continue;
    const bool better = route->path.size() > best_length ||
                        (route->path.size() == best_length && exact_method && !best_exact_method);
    if (best.route && !better) continue;
    best.route = route;
    best_length = route->path.size();
    best_exact_method = exact_method;
  }
  return best;
}

}  // namespace muster::io
