// SPDX-License-Identifier: Apache-2.0
// RedfishSession: requests to one BMC. Sends secrets only to whom the inventory declares or first
// contact has pinned, logs in once and reuses the token, logs in again once when it expired, never
// repeats a refused password, waits when the BMC says "later".
#pragma once

#include "bmc/redfish/connections.h"
#include "bmc/redfish/login.h"
#include "bmc/redfish/multipart.h"
#include "bmc/redfish/recent_reads.h"
#include "bmc/redfish/reply.h"
#include "bmc/trust.h"
#include "inventory/model/bmc_trust.h"

#include <functional>
#include <memory>
#include <string>

namespace muster::bmc {

class RedfishSession {
 public:
  struct Options {
    NodeName node;
    std::string base_url;  ///< "https://10.20.250.1"
    std::string username;
    std::function<Result<Secret>()> password;  ///< read at the moment of the login
    std::function<Result<Secret>()> next_password =
        {};  ///< that it is to be changed to; empty: none is declared
    lifecycle::AdaptiveSemaphore* requests = nullptr;  ///< of all BMCs together; null: unbounded
    lifecycle::AdaptiveSemaphore* uploads = nullptr;
    RecentReads* recent = nullptr;      ///< of all BMCs together; null: its own
    inventory::BmcTrust declared = {};  ///< what the inventory says of its certificate
    inventory::BmcTrustPolicy policy =
        inventory::BmcTrustPolicy::FirstContact;  ///< where it says nothing
    std::string first_pin =
        {};  ///< first contact was elsewhere, without a secret, and saw this certificate
    std::size_t rank = 0;  ///< among those that wait for such a place: the lowest first, so that
                           ///< what has begun gets to its end
  };

  /// `journal` writes to `store`; a session without one has its own.
  RedfishSession(Options options, lifecycle::Store& store, Clock& clock,
                 HttpClientFactory make_client, lifecycle::Journal* journal = nullptr);

  const std::string& address() const { return options_.base_url; }
  /// Requests so far that may have changed something.
  std::uint64_t writes() const { return connections_.writes(); }
  /// Of the login; some vendors want it in a form as well. "" before it.
  const std::string& token() const { return login_.token(); }

  enum class Busy {
    Wait,
    Answer
  };  ///< what "later" (429, 503) means: it is waited for, about a minute, or it is the answer
  /// The answers below are 2xx; everything else is an Error with the service's words.
  Async<RedfishReply> get(std::string path, std::chrono::milliseconds timeout = kRequestTimeout,
                          Busy busy = Busy::Wait);
  Async<RedfishReply> post(std::string path, Json body,
                           std::chrono::milliseconds timeout = kRequestTimeout);
  /// As post, but any status is an answer.
  Async<RedfishReply> postAny(std::string path, Json body,
                              std::chrono::milliseconds timeout = kRequestTimeout);
  /// Sends If-Match as the ladder wants it: as given, weak made strong, without.
  Async<RedfishReply> patch(std::string path, Json body, std::string etag);
  /// With If-None-Match in the place of If-Match, as AMI wants it for a boot order.
  Async<RedfishReply> patchIfNoneMatch(std::string path, Json body, std::string etag);
  Async<RedfishReply> erase(std::string path);
  /// One attempt on a fresh connection, so that nothing below can send it twice. Any status is an
  /// answer.
  Async<RedfishReply> upload(std::string path, MultipartBody body,
                             std::chrono::milliseconds timeout);
  /// One look with the token at hand: no login, no waiting, any status is an answer. For a BMC that
  /// may be restarting.
  Async<RedfishReply> peek(std::string path, bool with_token);

  /// A long answer in pieces, on a connection of its own that takes no place among the requests,
  /// with the token at hand. Returns when the service ends it; `sink` may stop it. Errors: those of
  /// errorOf, Timeout (silent for kEventSilence), Unavailable (broken off)
  Async<void> stream(std::string path, std::string last_event_id,
                     std::function<Result<void>(std::string_view)> sink);

  /// As patch, but with the token at hand and never again: a login in between would not know yet
  /// which password holds.
  Async<RedfishReply> patchOnce(std::string path, Json body, std::string etag);

  /// Of what came by `stream`: its words without this session's secrets.
  void withhold(Json& event) { connections_.withheld().takeOutOf(event, false); }

  /// What keeps answers for a moment.
  RecentReads& recent() { return options_.recent ? *options_.recent : own_recent_; }

  const std::string& username() const { return options_.username; }
  TrustMemory& trust() { return memory_; }
  bool hasNextPassword() const { return static_cast<bool>(options_.next_password); }
  Result<Secret> nextPassword() const { return login_.account().next_password(); }
  /// Whether the last login was with the next password.
  bool usesNextPassword() const { return login_.usesNextPassword(); }
  /// Drops the token, and every connection: the next request begins anew.
  void forgetLogin();
  /// SHA-256 of the certificate that was shown and trusted last; "": none yet.
  const std::string& shownCertificate() const { return trust_.shown(); }
  const inventory::BmcTrust& declaredTrust() const { return options_.declared; }
  void forgetConnections() { connections_.forget(); }

  /// Logs out. Best effort.
  Async<void> close() { return login_.close(); }

  static constexpr std::chrono::milliseconds kRequestTimeout = kRedfishTimeout;

 private:
  /// Whether an answer has just shown that the token holds.
  bool isTokenProven() const;
  /// With a login, as often as "later" is waited for.
  Async<RedfishReply> call(RedfishCall call);
  Async<RedfishReply> authorized(RedfishCall call);

  Options options_;
  Clock& clock_;
  TrustMemory memory_;
  std::unique_ptr<lifecycle::Journal> own_journal_;
  ConnectionTrust trust_;
  RedfishConnections connections_;
  RedfishLogin login_;
  struct Proof {
    std::string token;
    std::chrono::steady_clock::time_point at;
  };
  RecentReads own_recent_;
  Proof proof_;  ///< of the last answer that is given only to who has logged in
};

}  // namespace muster::bmc
