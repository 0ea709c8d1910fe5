// SPDX-License-Identifier: Apache-2.0
// findings: what is wrong, and ending by a person's word what nothing else ends.
#include "cli/commands/commands.h"

#include "app/controller.h"
#include "cli/view/findings_view.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/model/clear_findings.h"

#include <iostream>
#include <set>

namespace muster::cli {
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

int findings(const app::Options& options, const std::string& nodes) {
  const auto wanted = subjectsOf(nodes);
  if (!wanted) return report(wanted.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  auto open = (*store)->findings(nullptr);
  if (!open) return report(open.error());
  std::erase_if(*open, [&](const lifecycle::Finding& finding) {
    return !wanted->empty() && !wanted->contains(finding.facet.subject);
  });
  std::cout << (options.json ? findingsJson(*open) : findingsText(*open));
  return kOk;
}

int findingsClear(const app::Options& options, const std::string& nodes, const std::string& facet,
                  const std::string& reason) {
  const auto subjects = subjectsOf(nodes);
  if (!subjects) return report(subjects.error());
  if (subjects->empty())
    return report(Error(
        ErrorCode::InvalidInput,
        "name the nodes (or @cluster) whose findings of this facet are over; nothing was cleared"));
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const lifecycle::ClearFindings what{
      {subjects->begin(), subjects->end()}, FacetName(facet), app::actorText(), reason};
  const auto cleared = lifecycle::clearFindings(**store, what, SystemClock().now());
  if (!cleared) return report(cleared.error());
  std::cout << (options.json ? findingsJson(*cleared)
                             : fmt::format("cleared {} findings; what still holds is found again\n",
                                           cleared->size()));
  return kOk;
}

}  // namespace muster::cli
