// SPDX-License-Identifier: Apache-2.0
// What the API answers from: a store connection and a session of its own, on one thread beside the
// controller's, so that no client slows the site's work.
#pragma once

#include "api/access_file.h"
#include "api/doors.h"
#include "api/tokens.h"
#include "app/nodes/fleet_view.h"
#include "app/site/session.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

namespace muster::api {

/// Every node at one moment; rows are in the order of the inventory's nodes.
struct Fleet {
  explicit Fleet(app::Session& session) : view(session) {}
  WallTime as_of{};
  app::FleetView view;
  const app::SiteStatus& status = view.status();
  std::map<std::string, std::size_t> index;  ///< of status.nodes, by name
  /// A row as a listing prints it.
  struct Printed {
    std::uint64_t revision = 0;
    std::string json;
  };
  std::vector<Printed> printed;
};

/// What the server has answered, for /metrics.
struct ApiCounters {
  std::map<std::pair<std::string, int>, std::uint64_t> answered;  ///< by route and status
  std::atomic<std::uint64_t> streams = 0;                         ///< that are open
};

/// All of it on the reader thread but for `reload` and the count of streams.
class SiteReader {
 public:
  /// Makes the store of a new state folder. Errors: those of the store
  static Result<std::unique_ptr<SiteReader>> open(const app::Options& options,
                                                  std::filesystem::path access_file);

  const app::Options& options() const { return options_; }
  /// Options of a use case that this client asks for.
  app::Options optionsFor(const std::string& actor) const;
  lifecycle::Store& store() { return *store_; }
  WallTime now() const { return SystemClock().now(); }

  /// The inventory in use with what rollouts have laid over it. Errors: Unavailable (no good
  /// inventory has been read yet: which problems)
  Result<app::Session*> session();
  /// At most a second old, or four times as long as a look takes. Follows the log
  /// (app/nodes/fleet_view.h).
  Result<const Fleet*> fleet();
  /// Those of the site as at the last look, of this subject as the store has them now.
  Result<const lifecycle::FactSet*> factsWith(const lifecycle::Subject& subject);
  /// An order was carried out: the next look shows what it has changed.
  void expireFleet() { fleet_good_until_ = {}; }
  WallTime inUseSince() const { return in_use_since_; }
  ApiCounters& counters() { return counters_; }

  /// From now on the inventory is read anew; from any thread. One with errors leaves the one in
  /// use.
  void reload() { reload_ = true; }

  const std::filesystem::path& accessFile() const { return access_file_; }
  /// Errors: Denied (the access file cannot be trusted), InvalidInput (a row that may be about them
  /// is wrong)
  Result<std::optional<Identity>> identify(const io::PeerCredentials& peer);
  /// A store that was deleted or replaced beneath this process (a restored backup) is opened anew,
  /// and everything that was known is forgotten. Not while there is none: a new one is nobody's
  /// wish then. Returns whether it was.
  bool reopenIfReplaced();
  /// Of the store that is open; another one has another.
  std::uint64_t storeNumber() const { return store_number_; }
  /// The tokens of the store as they are now; null: as they were at the last call.
  Result<std::shared_ptr<const TokenTable>> changedTokens();
  /// As the access file and the files that it names are now; null: as they were at the last call.
  std::shared_ptr<Doors> changedDoors();
  /// What access file and tokens name and nobody has (unknown_names.h), a line each; nullopt: they,
  /// and the inventory, are as at the last call, or no inventory has been read yet.
  std::optional<std::vector<std::string>> changedUnknownNames();
  /// What is wrong with the access file and the files that it names, as it was read last.
  const std::vector<std::string>& accessProblems() const { return access_problems_; }

 private:
  SiteReader(app::Options options, std::filesystem::path access_file,
             std::unique_ptr<lifecycle::Store> store)
      : options_(std::move(options)),
        access_file_(std::move(access_file)),
        store_(std::move(store)) {}
  bool mustReopen();
  void print(const app::Session& session);

  using Steady = std::chrono::steady_clock;
  app::Options options_;
  std::filesystem::path access_file_;
  std::unique_ptr<lifecycle::Store> store_;
  std::uint64_t store_number_ = 0;
  bool loss_said_ = false;
  std::unique_ptr<app::Session> session_;
  std::string rollouts_;  ///< overlaysMark of the session
  std::optional<Error> session_failed_;
  Steady::time_point look_again_{}, fleet_good_until_{};
  WallTime in_use_since_{};
  std::unique_ptr<Fleet> fleet_;
  bool was_anew_ = false;    ///< the last look has read the whole store
  std::size_t in_turn_ = 0;  ///< nodes that the next look reads beside those that the log names
  std::atomic<bool> reload_{false};
  ApiCounters counters_;

  struct Known {
    std::optional<Identity> identity;
    Steady::time_point until;
  };
  std::map<std::string, Known> peers_;  ///< by uid and groups
  std::optional<std::string> tokens_text_;
  std::vector<std::filesystem::path> door_files_;
  std::string doors_mark_;  ///< of those files, as they were
  std::vector<std::string> access_problems_;
  std::string names_mark_;  ///< of what changedUnknownNames has looked at
};

}  // namespace muster::api
