// SPDX-License-Identifier: Apache-2.0
// The cluster as it holds now: the declared inventory, and over it what the store's rollouts have
// changed.
#pragma once

#include "app/site/options.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "lifecycle/store/store.h"

#include <memory>
#include <string>
#include <vector>

namespace muster::app {

/// Whether anything was ever done here: a PostgreSQL store always counts, SQLite by its file or by
/// the mark that it was there (opening it then says that it is lost).
bool storeExists(const Options& options);
/// The store, with the state folder made when it is missing.
Result<std::unique_ptr<lifecycle::Store>> openStoreForWriting(const Options& options);

/// Errors: NotFound (nothing was done here yet: what to begin with)
Result<void> requireUsed(const Options& options);
/// The store of whom only reads: none is made. Errors: NotFound (nothing was done here yet)
Result<std::unique_ptr<lifecycle::Store>> openStoreForReading(const Options& options);

/// A store that does not exist yet has no rollouts.
Result<std::unique_ptr<lifecycle::EffectiveCluster>> effectiveCluster(const Options& options);

/// The nodes of a hostlist; empty text: none. Errors: InvalidInput (no hostlist), NotFound (not in
/// the inventory)
Result<std::vector<NodeName>> selectedNodes(const inventory::Cluster& cluster,
                                            const std::string& hostlist);
/// Errors: NotFound
Result<const inventory::Node*> requireNode(const inventory::Cluster& cluster,
                                           const std::string& name);

/// One line for the journal. Errors: those of the store
Result<void> addNote(lifecycle::Store& store, const lifecycle::Subject& subject, std::string text);

}  // namespace muster::app
