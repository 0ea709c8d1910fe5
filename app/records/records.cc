// SPDX-License-Identifier: Apache-2.0
#include "app/records/records.h"

#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "inventory/model/node.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/model/clear_findings.h"

#include <set>

namespace muster::app {
namespace {

/// `nodes`: hostlist or @cluster; empty: none is named.
Result<std::set<lifecycle::Subject>> subjectsOf(const std::string& nodes) {
  if (nodes == lifecycle::Subject::kCluster) return std::set{lifecycle::Subject::cluster()};
  std::set<lifecycle::Subject> out;
  if (nodes.empty()) return out;
  TRY(names, inventory::expandHostlist(nodes));
  for (const auto& name : names) out.insert(lifecycle::Subject(NodeName(name)));
  return out;
}

}  // namespace

Result<std::vector<lifecycle::Event>> lastEvents(const Options& options, const std::string& name,
                                                 std::size_t limit) {
  TRY(store, openStoreForReading(options));
  const auto subject = lifecycle::Subject::parse(name);
  TRY(events, store->lastEvents(limit, name.empty() ? nullptr : &subject));
  if (!events.empty() || name.empty() || subject.isCluster()) return std::move(events);
  const auto cluster = loadCluster(options);
  if (cluster && cluster->findNode(NodeName(name))) return std::move(events);
  return fail(ErrorCode::NotFound,
              fmt::format("no event names {}, and the inventory has no such node", name));
}

Result<lifecycle::History> history(const Options& options, const std::string& what,
                                   std::size_t limit) {
  TRY(store, openStoreForReading(options));
  return lifecycle::historyOf(*store, what, limit);
}

Result<std::vector<lifecycle::Finding>> openFindings(const Options& options,
                                                     const std::string& nodes) {
  TRY(wanted, subjectsOf(nodes));
  TRY(store, openStoreForReading(options));
  TRY(open, store->findings(nullptr));
  std::erase_if(open, [&](const lifecycle::Finding& finding) {
    return !wanted.empty() && !wanted.contains(finding.facet.subject);
  });
  return std::move(open);
}

Result<std::vector<lifecycle::Finding>> clearFindings(const Options& options,
                                                      const ClearFindingsRequest& request) {
  TRY(subjects, subjectsOf(request.nodes));
  if (subjects.empty())
    return fail(ErrorCode::InvalidInput,
                "name the nodes (or @cluster) whose findings of this facet are over; nothing was "
                "cleared");
  TRY(store, openStoreForWriting(options));
  const lifecycle::ClearFindings what{{subjects.begin(), subjects.end()},
                                      FacetName(request.facet),
                                      actorText(options),
                                      request.reason};
  return lifecycle::clearFindings(*store, what, SystemClock().now());
}

}  // namespace muster::app
