// SPDX-License-Identifier: Apache-2.0
// What all roles of one Redfish BMC share: its session, where its resources are, and the last read
// of its system. Resources are found by role, answers are read leniently.
#pragma once

#include "base/clock.h"
#include "bmc/machine_identity.h"
#include "bmc/quirks.h"
#include "bmc/redfish/session.h"
#include "bmc/roles.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {

/// Where things are on this BMC; found once, forgotten at a BMC reset.
struct ResourceUris {
  std::string system, manager, update_service, tasks, chassis;
  std::vector<std::string> baseboards;  ///< systems that are no hosts (HGX_Baseboard_0); none where
                                        ///< one BMC has several machines
  Quirks quirks;
};

struct Member {
  std::string uri;
  Json json;
  std::string etag = {};  ///< of an answer of its own; "": it came with its collection
};
/// Of a collection. A baseboard answers 503 while the host is off: the other members still count.
struct Members {
  struct Unread {
    std::string uri;
    Error why;
  };
  std::vector<Member> found;
  std::vector<Unread> unread;
};

/// The system as it was read once; never null where it is an answer.
using SystemSnapshot = std::shared_ptr<const RedfishReply>;

/// "On", "Off"; everything else (PoweringOn, PoweringOff, Paused, absent) is Unknown.
PowerState powerStateOf(const Json& system);

/// "/redfish/v1/Chassis/1/" → "1".
std::string lastSegment(const std::string& uri);

/// So long a read stands for another one where nothing was written since: answers of BMCs are on
/// their way for 100–500 ms.
inline constexpr std::chrono::milliseconds kReadHolds{500};

class RedfishResources {
 public:
  /// `system_id`: of the ComputerSystem, where several are behind the BMC; "": the one that can be
  /// reset and boots.
  RedfishResources(std::unique_ptr<RedfishSession> session, Clock& clock,
                   std::string system_id = {});

  const std::string& address() const { return session_->address(); }
  RedfishSession& session() { return *session_; }
  Clock& clock() { return clock_; }

  Async<ResourceUris> uris();
  /// As far as they are known; no request is sent.
  const std::optional<ResourceUris>& knownUris() const { return uris_; }
  /// What manager and service root said of the machine when uris() read them.
  const std::vector<ReportedIdentity>& reportedByBmc() const { return reported_by_bmc_; }
  /// The BMC restarts, or somebody wants to begin anew: nothing that was found counts any more.
  void forget();
  /// Grows with each forget().
  std::uint64_t generation() const { return generation_; }

  enum class Want { AsListed, Expanded, FirstPages };
  /// Expanded: all members in one answer, where the service offers it and the quirks allow it; else
  /// one request each. FirstPages: no page is asked for beyond `limit` members.
  Async<Members> members(std::string collection, std::size_t limit,
                         std::chrono::milliseconds timeout = RedfishSession::kRequestTimeout,
                         Want want = Want::AsListed,
                         RedfishSession::Busy busy = RedfishSession::Busy::Wait);

  /// The URIs of a collection's members, all pages. Errors: as members()
  Async<std::vector<std::string>> listed(std::string collection, std::size_t limit);
  /// All members of a collection in one answer a page, by $expand; quirks are not asked, for the
  /// caller evaluates what it gets. Nothing: the service does not offer it, refuses it, or leaves
  /// members as they are listed. Errors: Denied; Unavailable, Timeout (the collection itself cannot
  /// be read now)
  Async<std::optional<std::vector<Member>>> expanded(std::string collection, std::size_t limit,
                                                     std::chrono::milliseconds timeout);

  /// The ResetType values that an action allows; none: it does not say.
  Async<std::vector<std::string>> allowedResets(Json action);
  /// Of the system's reset action.
  Async<std::vector<std::string>> offeredResets(Json system);

  /// A read of the system, remembered until the session writes something.
  Async<SystemSnapshot> readSystem();
  /// The last such read while it is hardly older than an answer is on its way; else a new one. Not
  /// for waiting: that must see changes. What uris() read to find the system is such a read too.
  Async<SystemSnapshot> cachedSystem();

 private:
  Async<Member> pickSystem(std::string collection);
  Async<Member> findSystem(std::string collection);
  void remember(const SystemSnapshot& reply, std::chrono::steady_clock::time_point at);
  Async<Member> pickManager(std::string collection, Member system);
  Async<BmcIdentity> dialectOf(Json root, Member system, Member manager);

  std::unique_ptr<RedfishSession> session_;
  Clock& clock_;
  std::string system_id_;
  std::vector<ReportedIdentity> reported_by_bmc_;
  std::vector<std::string> baseboards_;  ///< by pickSystem()
  std::optional<ResourceUris> uris_;
  std::uint64_t generation_ = 0;
  bool expand_ = false;  ///< $expand is offered, allowed by the quirks, and has not failed here
  bool expand_offered_ = false;
  std::map<std::string, std::vector<std::string>>
      resets_;  ///< ResetType values of an ActionInfo, by its URI
  struct SystemRead {
    std::weak_ptr<const RedfishReply> reply;  ///< recent_reads.h
    std::chrono::steady_clock::time_point at;
    std::uint64_t writes = 0;  ///< of the session until then
  };
  std::optional<SystemRead> read_;
  std::uint64_t reads_sent_ = 0;  ///< of the system
};

/// A value that was found on the BMC and holds until its resources are forgotten.
template <class T>
class UntilForgotten {
 public:
  const T* get(const RedfishResources& resources) const {
    return value_ && generation_ == resources.generation() ? &*value_ : nullptr;
  }
  void set(const RedfishResources& resources, T value) {
    value_ = std::move(value);
    generation_ = resources.generation();
  }

 private:
  std::optional<T> value_;
  std::uint64_t generation_ = 0;
};

}  // namespace muster::bmc
