// SPDX-License-Identifier: Apache-2.0
// RedfishSession: requests to one BMC. Sends secrets only to whom the inventory declares or first
// contact has pinned, logs in once and reuses the token, logs in again once when it expired, never
// repeats a refused password, waits when the BMC says "later".
#pragma once

#include "base/io/http.h"
#include "bmc/arbiter.h"
#include "bmc/redfish/json_view.h"
#include "bmc/redfish/multipart.h"
#include "bmc/trust.h"
#include "lifecycle/executor/adaptive_semaphore.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::bmc {

using HttpClientFactory = std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)>;

struct RedfishReply {
  int status = 0;
  io::Headers headers;
  Json body;

  bool ok() const { return status >= 200 && status < 300; }
  std::string header(const std::string& name) const;
  /// ETag header, else @odata.etag.
  std::string etag() const;
};

/// The path of a link that may be a whole URL; "" when it is neither.
std::string pathOnly(const std::string& link);

/// Where a link of the BMC leads: on the BMC itself. Errors: Corrupt (to another host, which is not
/// followed, or no path from the root)
Result<io::Url> urlOfLink(const std::string& base_url, const std::string& link);

/// What a status and the service's own words mean to the caller.
/// 401, 403 Denied · 404 NotFound · 409, 412 Conflict · 408, 429, 5xx Unavailable · else
/// InvalidInput
Error errorOf(const RedfishReply& reply, const std::string& what);

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
  std::uint64_t writes() const { return writes_; }
  /// Of the login; some vendors want it in a form as well. "" before it.
  const std::string& token() const { return token_; }

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

  const std::string& username() const { return options_.username; }
  TrustMemory& trust() { return trust_; }
  bool hasNextPassword() const { return static_cast<bool>(options_.next_password); }
  Result<Secret> nextPassword() const { return options_.next_password(); }
  /// Whether the last login was with the next password.
  bool usesNextPassword() const { return uses_next_; }
  /// Drops the token, and every connection: the next request begins anew.
  void forgetLogin();
  /// SHA-256 of the certificate that was shown and trusted last; "": none yet.
  const std::string& shownCertificate() const { return shown_; }
  const inventory::BmcTrust& declaredTrust() const { return options_.declared; }
  void forgetConnections() { idle_.clear(); }

  /// Logs out. Best effort.
  Async<void> close();

  static constexpr std::chrono::milliseconds kRequestTimeout{30000};

 private:
  struct Call {
    std::string method, path;
    io::Headers headers;
    std::string body;
    FirmwareImage image = {};  ///< after the body, and then body_end
    std::string body_end = {};
    std::chrono::milliseconds timeout = kRequestTimeout;
    bool repeatable = true;  ///< may be sent again after a lost connection
    bool wait_busy = true;   ///< wait and repeat on 429 and 503
    bool upload = false;     ///< a connection of its own, and a place among the uploads
  };
  struct Lease;

  Async<RedfishReply> call(Call call);
  Async<RedfishReply> authorized(Call call);
  Async<RedfishReply> exchange(Call call, std::string token);
  Async<io::HttpResponse> sendInPlace(io::HttpRequest request, bool fresh,
                                      lifecycle::AdaptiveSemaphore* places);
  Async<io::HttpResponse> sendOnce(io::HttpRequest request, bool fresh);
  /// What an answer that never came means: another certificate than the pinned one is a refusal, or
  /// the expected new one.
  Result<io::HttpResponse> judged(io::HttpClient& client, Error error);
  /// Fixes whom connections trust; on first contact by one request without any secret.
  /// (redfish_session_trust.cc)
  Async<void> ensureTrust();
  Async<void> firstContact();
  io::TlsTrust tlsTrust() const;
  Async<void> login(std::string stale_token);
  struct Candidate {
    Secret password;
    bool is_next = false;
    bool last = true;  ///< there is no other one
  };
  Result<std::vector<Candidate>> candidates();
  /// Whether the BMC took it. Errors: what says nothing about the password
  Async<bool> tryPassword(std::string path, Candidate candidate);
  Async<bool> tryBasic(Candidate candidate);  ///< where the service has no sessions
  Async<std::string> sessionsPath();          ///< "": it has none
  /// Logs out of a session with the token of another; best effort.
  /// Answers the session that was remembered until now.
  Async<std::string> rememberSession(std::string path);
  Async<void> closeSession(std::string path, std::string token);
  Result<void> acceptLogin(const RedfishReply& reply, const std::string& sessions_path);
  std::unique_ptr<io::HttpClient> takeClient(bool fresh);

  Options options_;
  Clock& clock_;
  HttpClientFactory make_client_;
  TrustMemory trust_;
  std::unique_ptr<lifecycle::Journal> own_journal_;
  lifecycle::Journal& journal_;
  RateLimiter rate_limiter_;
  AsyncSemaphore one_login_{1};
  AsyncSemaphore one_pin_{1};
  bool trusted_ = false;  ///< it is fixed whom connections trust: `pinned_`, or the declared CA
  std::string pinned_;
  std::string shown_;  ///< certificate of the last connection that was trusted
  std::string token_;
  std::uint64_t writes_ = 0;
  bool uses_next_ = false;
  std::string session_path_;
  std::vector<std::unique_ptr<io::HttpClient>> idle_;
};

}  // namespace muster::bmc
