// SPDX-License-Identifier: Apache-2.0
// What every command shares: where the inventory, the state, the cache and the lab are, and how to
// print.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace muster::app {

struct Options {
  std::filesystem::path inventory = "cluster.yaml";
  std::filesystem::path state;  ///< --state, MUSTER_STATE, /var/lib/muster
  std::string store;  ///< --store, MUSTER_STORE: postgresql://…; empty: SQLite in the state folder
  std::filesystem::path cache;  ///< MUSTER_CACHE, ~/.cache/muster
  std::filesystem::path lab;    ///< --lab, MUSTER_LAB; empty: /run/muster-lab/CLUSTER
  bool json = false;
  std::string command_line;   ///< as typed, without passwords: kept in the journal
  std::string server;         ///< --server, MUSTER_SERVER: https://… or a socket; whom commands ask
  bool server_given = false;  ///< on this command line
  bool direct = false;        ///< --direct: no server is asked
  std::string token;          ///< MUSTER_TOKEN
  std::filesystem::path token_file;   ///< --token-file, MUSTER_TOKEN_FILE; comes before `token`
  std::filesystem::path server_ca;    ///< --server-ca, MUSTER_SERVER_CA: PEM
  std::filesystem::path client_cert;  ///< --client-cert, MUSTER_CLIENT_CERT: PEM, its own first
  std::filesystem::path client_key;   ///< --client-key, MUSTER_CLIENT_KEY: PEM
  /// Where this process's API answers other hosts (https://…): of several hosts, the one that
  /// serves names it to those that ask a standby. Empty: nowhere
  std::string api_url = {};
  /// Private halves that the signer holds, by their names in a state folder; read by root for a
  /// backup (app/backup/backup.h).
  std::shared_ptr<const std::map<std::string, Secret>> signer_keys;
  std::string actor;  ///< who asks, where it is not this process's user (a client of the API); for
                      ///< actorText

  /// The URL of the store (lifecycle::openStore).
  std::string storeUrl() const {
    return store.empty() ? "sqlite:" + (state / "muster.db").string() : store;
  }
  std::filesystem::path labFolder(const inventory::Cluster& cluster) const;
  /// /run/muster/WHAT-…, of this state folder alone: for what others read (the state may be shut to
  /// them), and for Unix sockets, whose names have 107 bytes at most.
  std::filesystem::path runFolder(const std::string& what) const;
};

/// Lets inventories of this process name files in these folders too (inventory/parse/paths.h).
/// Effect: sets MUSTER_ALLOW_PATH; before threads begin
void allowPaths(const std::vector<std::string>& folders);

/// Options with the environment applied.
Options defaultOptions();

/// The inventory, evaluated also by what others know of it: the catalogue of checks.
inventory::Loaded loadDeclared(const Options& options);
/// "1 problem", "3 problems".
std::string problemsText(const Diagnostics& diagnostics);
/// Loads the inventory; prints every diagnostic to stderr. Errors: InvalidInput with the count
Result<inventory::Cluster> loadCluster(const Options& options);
/// For a cluster whose machines are its virtual twin: their BMCs show certificates of their own.
/// What the inventory declares is of the real ones, which cannot be reached from the twin's
/// network.
void trustTwinBmcs(inventory::Cluster& cluster);

}  // namespace muster::app
