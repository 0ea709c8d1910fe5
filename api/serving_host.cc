// SPDX-License-Identifier: Apache-2.0
#include "api/serving_host.h"

#include "app/site/actor.h"
#include "app/site/leadership.h"
#include "app/site/state_folder.h"

#include <fmt/format.h>

namespace muster::api {
namespace {

Problem notServing(const lifecycle::Leader& leader) {
  Problem out(
      409, "not-serving",
      fmt::format("this host stands by: {} serves the site, at {}, and this needs its "
                  "process",
                  leader.holder, leader.address),
      leader.api_url.empty()
          ? "order it on that host; its API answers from elsewhere once its `muster server` "
            "has --listen ADDRESS:PORT"
          : "ask it at " + leader.api_url);
  out.serves = ServingHost{leader.holder, leader.address, leader.api_url};
  return out;
}

Problem nobodyServes() {
  Problem out(503, "unavailable",
              "no host serves the site yet, and this needs the process of the one that does",
              "wait until `muster server` of a host says so, and ask again");
  out.retryable = true;
  return out;
}

}  // namespace

std::expected<void, Problem> requireServingHost(SiteReader& reader) {
  const auto session = reader.session();
  // Without an inventory nobody knows; the route itself says what is wrong with it.
  if (!session || (*session)->lab || !app::hasSeveralControllers((*session)->cluster())) return {};
  TRY(own, app::holderOf(reader.options().state, app::hostName()));
  TRY(leader, lifecycle::currentLeader(reader.store()));
  if (!leader) return std::unexpected(nobodyServes());
  if (leader->holder == own) return {};
  return std::unexpected(notServing(*leader));
}

}  // namespace muster::api
