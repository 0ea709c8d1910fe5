// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: which handler a request is for.
#pragma once

#include "base/io/http.h"

#include <memory>
#include <string>
#include <vector>

namespace muster::io {

class Routes {
 public:
  struct Match {
    std::shared_ptr<const Route>
        route;  ///< kept alive while its coroutine runs: it may read its captures
    bool path_known = false;
  };
  void add(std::vector<Route> routes);
  Match find(const std::string& method, const std::string& path) const;

 private:
  std::vector<std::shared_ptr<const Route>> routes_;
};

}  // namespace muster::io
