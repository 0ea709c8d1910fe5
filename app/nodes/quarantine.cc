// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/quarantine.h"

#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "app/site/site_keys.h"
#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/model/certificate_keys.h"
#include "validate/certificate_migration.h"
#include "validate/validate.h"

namespace muster::app {
namespace {

Result<void> revokeCertificate(const Options& options, lifecycle::Store& store,
                               const NodeName& node, const std::string& by,
                               const std::string& reason) {
  TRY(keys, Keys::loadOrCreate(options.state));
  const auto folder = options.state / "certificates";
  TRY_OK(validate::migrateCertificates(store, keys.certificates, folder));
  TRY(text, store.getValue(lifecycle::certificateKey(node)));
  const auto certificate =
      text ? validate::Certificate::fromJson(*text)
           : Result<validate::Certificate>(fail(ErrorCode::NotFound, "it has none"));
  return validate::Revocations(store, folder, keys.certificates)
      .add({certificate ? certificate->id() : "", node, SystemClock().now(), by,
            "out of quarantine: " + reason});
}

}  // namespace

Result<std::map<NodeName, lifecycle::QuarantineEntry>> quarantinedNodes(const Options& options) {
  TRY(store, openStoreForReading(options));
  return lifecycle::Quarantine(*store).entries();
}

Result<std::vector<QuarantinedNode>> addToQuarantine(const Options& options,
                                                     const std::string& nodes,
                                                     const std::string& reason) {
  TRY(cluster, loadCluster(options));
  TRY(names, inventory::expandHostlist(nodes));
  for (const auto& name : names)
    if (!cluster.findNode(NodeName(name)))
      return fail(ErrorCode::NotFound,
                  fmt::format("node {} is not in the inventory; nothing was done", name));
  TRY(store, openStoreForWriting(options));
  lifecycle::Quarantine quarantine(*store);
  std::vector<QuarantinedNode> out;
  for (const auto& name : names) {
    const NodeName node(name);
    const auto now = SystemClock().now();
    TRY(is_new, quarantine.add(node, {now, actorText(options), reason, ""}));
    if (is_new) {
      out.push_back({node, true, reason});
      continue;
    }
    TRY_OK(store->addEvent(
        {0, now, lifecycle::EventKind::Note, lifecycle::Subject(node), "",
         fmt::format("quarantine: again: {} (by {})", reason, actorText(options))}));
    TRY(held, quarantine.find(node));
    out.push_back({node, false, held ? held->reason : ""});
  }
  return out;
}

Result<void> removeFromQuarantine(const Options& options, const NodeName& node,
                                  const std::string& reason) {
  TRY(store, openStoreForWriting(options));
  lifecycle::Quarantine quarantine(*store);
  if (const auto held = quarantine.find(node); held && *held && !reason.empty())
    TRY_OK(revokeCertificate(options, *store, node, actorText(options), reason));
  return quarantine.remove(node, actorText(options), reason, SystemClock().now());
}

}  // namespace muster::app
