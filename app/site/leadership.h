// SPDX-License-Identifier: Apache-2.0
// One of several hosts serves a site (networks.provisioning.controllers): it answers agents and
// boots, and acts. The others stand by. docs/adr/0123, docs/two-hosts.md. With one controller
// nothing of this happens.
#pragma once

#include "app/site/options.h"
#include "app/site/site_keys.h"
#include "base/ip_address.h"
#include "lifecycle/store/leader_lease.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace muster::provision {
class ImageStore;
}

namespace muster::app {

enum {
  kLostLeadership = 4
};  ///< the exit status of a process that has to stop because another host serves now

/// Also in a twin, where there is but one: whoever rehearses looks at that too.
bool hasSeveralControllers(const inventory::Cluster& cluster);
/// Of this machine's interfaces, in its present network namespace; MUSTER_ADDRESS alone where that
/// is given (a host with several of the declared addresses).
std::vector<Ipv4> addressesOfHost();

/// Whether this host can serve, where several are declared. Errors: InvalidInput (the store is
/// SQLite), NotFound (none of the addresses is here)
Result<void> checkCanServe(const Options& options, const inventory::Cluster& cluster);
/// This host's CA and keys, which have to be those of the site: its first host makes them, no other
/// does. A key that this host has rotated becomes the site's; the others then need a copy of it.
/// Who does not `serve` only looks, and may have others. An only controller that does writes into a
/// shared store which they are, for the day when a second one is declared. Errors: Denied (others,
/// or none: which files to copy)
Result<Keys> siteKeys(const Options& options, bool several, lifecycle::Store& store, bool serves);

/// Each host has a copy of the images; built anew here they would be others, and every node would
/// be taken for wrong. Who has served so far may have built them anew. Errors: Denied (another
/// image: what to copy)
Result<void> agreeOnImages(const Options& options, const inventory::Cluster& cluster,
                           const provision::ImageStore& images, lifecycle::Store& store,
                           const std::string& holder);

/// Held while this process serves; a thread renews it. When another host has taken it, or it could
/// not be renewed in time, the thread ends the process (kLostLeadership): what this one believes to
/// be true of the site is old, and nothing of it must get out.
class Leadership {
 public:
  /// For a command: at once when it is free or this host's, after a lease when the other host is
  /// dead. Errors: Conflict (the other host serves: work there)
  static Result<std::unique_ptr<Leadership>> acquire(const Options& options,
                                                     const inventory::Cluster& cluster,
                                                     const std::string& holder);
  ~Leadership();
  /// Another host served before: the agents of what it has begun may still wait for its answer.
  bool tookOver() const { return took_over_; }

 private:
  Leadership(std::unique_ptr<lifecycle::Store> store, std::filesystem::path state,
             std::string holder, std::string address, std::string api_url);
  void renewLoop();
  [[noreturn]] void stepDown(const std::string& why);

  std::unique_ptr<lifecycle::Store> store_;
  const std::filesystem::path state_;
  SystemClock clock_;
  lifecycle::LeaderLease lease_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  bool took_over_ = false;
  std::thread renewing_;
};

/// For keep: waits until this host is the one that serves, or `asked` says that somebody wants the
/// state folder. Answers whether it is. `tell` hears who serves, once for each.
Result<bool> standBy(const Options& options, const inventory::Cluster& cluster,
                     const std::string& holder, const std::function<bool()>& asked,
                     const std::function<void(const lifecycle::Leader&)>& tell);

/// Where netboot works: its configuration, leases, log.
std::filesystem::path netbootFolder(const std::filesystem::path& state);
/// dnsmasq outlives a muster that is killed (it changes its user). While another host serves, none
/// of ours may answer.
void terminateOrphanedDnsmasq(const std::filesystem::path& state);

}  // namespace muster::app
