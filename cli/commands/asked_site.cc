// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/asked_site.h"

#include "api/site_choice.h"

#include <iostream>

namespace muster::cli {

Result<std::unique_ptr<app::SiteClient>> askedSite(const app::Options& options) {
  return api::chooseSite(options, [](const std::string& text) { std::cerr << text << '\n'; });
}

}  // namespace muster::cli
