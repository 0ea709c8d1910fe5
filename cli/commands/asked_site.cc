// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/asked_site.h"

#include "api/site_choice.h"
#include "app/site/embedded_site.h"
#include "app/site/state_lock.h"

#include <fmt/format.h>

#include <iostream>

#include <unistd.h>

namespace muster::cli {

Result<std::unique_ptr<app::SiteClient>> askedSite(const app::Options& options) {
  return api::chooseSite(options, [](const std::string& text) { std::cerr << text << '\n'; });
}

Result<void> requireNoServer(const app::Options& options, std::string_view what) {
  if (!options.server_given) return {};
  return fail(ErrorCode::InvalidInput,
              fmt::format("{}; leave out --server, or run it on the host of the site. Nothing was "
                          "done",
                          what));
}

Result<std::unique_ptr<app::SiteClient>> orderedSite(const app::Options& options) {
  const bool may_work_here = ::access(options.state.c_str(), R_OK | W_OK | X_OK) == 0;
  const bool is_named = !options.server.empty() && (!options.direct || options.server_given);
  if (is_named || (!options.direct && !may_work_here)) return askedSite(options);
  return std::make_unique<app::EmbeddedSite>(options);
}

Result<std::unique_ptr<app::SiteClient>> siteForRuns(const app::Options& options) {
  if (options.direct && !options.server_given) return nullptr;
  TRY(site, orderedSite(options));
  if (site->isEmbedded() && !app::isMonitorAlive(options.state)) return nullptr;
  return std::move(site);
}

}  // namespace muster::cli
