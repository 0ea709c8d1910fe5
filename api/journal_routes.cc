// SPDX-License-Identifier: Apache-2.0
// The journal: who asked for what and how it ended, and where its chain of hashes ends.
#include "api/answers.h"
#include "api/schema.h"
#include "app/records/audit.h"
#include "base/json_input.h"
#include "lifecycle/audit/history.h"

namespace muster::api {
namespace {

constexpr std::int64_t kHistoryLimit = 200, kMaxHistory = 10'000;

Reply auditHead(SiteReader& reader, const Call&) {
  TRY(ends, reader.store().auditEnds());
  return Answer{200, {{"sequence", ends.link}, {"hash", ends.hash}}};
}

/// What is carried away by `muster audit head`, and shows later that nothing was cut off.
Reply signedAuditHead(SiteReader& reader, const Call&) {
  TRY(head, app::signAuditHead(reader.options()));
  return Answer{200, {{"sequence", head.sequence}, {"hash", head.hash}, {"line", toText(head)}}};
}

/// As `muster history`.
Reply history(SiteReader& reader, const Call& call) {
  TRY(found, lifecycle::historyOf(reader.store(), call.text("what"),
                                  static_cast<std::size_t>(call.integer("limit", kHistoryLimit))));
  TRY(json, parseJson(found.toJson(), kKeptJson));
  return Answer{200, std::move(json)};
}

}  // namespace

void addJournalRoutes(std::vector<ApiRoute>& routes) {
  const auto add = [&](std::string path, std::string_view summary, std::vector<Field> query,
                       std::string name, Act act) {
    auto route =
        lookRoute(std::move(path), Reach::Site, summary, refTo(std::move(name)), std::move(act));
    route.query = std::move(query);
    routes.push_back(std::move(route));
  };
  add("/audit/head", "Where the log's chain of hashes ends", {}, "AuditHead", auditHead);
  add("/audit/head/signed",
      "The same as a line that the site's key for audit has signed, to be kept elsewhere", {},
      "SignedAuditHead", signedAuditHead);
  add("/history", "Who asked for what, and how each action ended",
      {{"what", Kind::Text, "A node, @cluster, or the beginning of a plan's hash; default: plans"},
       {"limit", Kind::Integer, "How many of each at most, the newest", false, 1, kMaxHistory}},
      "History", history);
}

}  // namespace muster::api
