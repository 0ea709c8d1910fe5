// SPDX-License-Identifier: Apache-2.0
// ui: the page in a browser of this host, for the user who types it.
#pragma once

#include "app/site/options.h"

#include <cstdint>
#include <filesystem>

namespace muster::cli {

struct UiArgs {
  std::filesystem::path socket;  ///< empty: the server's usual one
  std::uint16_t port = 0;        ///< 0: any
};
int ui(const app::Options& options, const UiArgs& args);

}  // namespace muster::cli
