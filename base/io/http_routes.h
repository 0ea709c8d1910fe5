// SPDX-License-Identifier: Apache-2.0
// Which handler a request is for.
#pragma once

#include "base/io/http.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::io {

/// Whether `path` is one of a template: "/nodes/{name}/why". Fills what stands for the names.
bool matchesTemplate(std::string_view path_template, std::string_view path,
                     std::map<std::string, std::string>& parameters);

class Routes {
 public:
  struct Match {
    std::shared_ptr<const Route>
        route;  ///< kept alive while its coroutine runs: it may read its captures
    bool path_known = false;
    std::map<std::string, std::string> parameters;  ///< of a template
  };
  void add(std::vector<Route> routes);
  Match find(const std::string& method, const std::string& path) const;

 private:
  std::vector<std::shared_ptr<const Route>> routes_;
};

}  // namespace muster::io
