// SPDX-License-Identifier: Apache-2.0
// The agent's identity: key, certificate, and the root that it trusts.
//
// Kept in `identity.json` of the state folder (mode 0600; in memory in the RAM OS): one file, so
// that key and certificate can never be of different ages. The request is stored before it is sent:
// if the answer is lost, or the agent dies, the same request is sent again, which the controller
// answers although the arming is used.
#pragma once

#include "agent/core/options.h"
#include "base/clock.h"
#include "base/io/crypto.h"
#include "base/io/http.h"
#include "wire/messages.h"

#include <functional>
#include <memory>
#include <string>

namespace muster::agent {

struct Identity {
  std::string node;
  std::string csr_pem;
  std::string ca_pem;
  io::TlsIdentity tls;  ///< certificate empty before enrollment
  WallTime not_before{}, not_after{};

  /// Is a new one due? At every call of a certificate older than kRenewAge (or than half its life),
  /// and still when it has expired.
  bool renewalDue(WallTime now) const;
  bool enrolled() const { return !tls.certificate_pem.empty(); }
  io::TlsTrust trust() const;
};

inline constexpr std::chrono::hours kRenewAge{24 * 30};

using ClientFactory = std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)>;

/// What is on disk: the renewed identity, or the one that the image writer left (whichever lasts
/// longer); in the RAM OS what an earlier life of the agent left. Errors: NotFound (RAM: enroll),
/// Corrupt
Result<Identity> loadIdentity(const AgentOptions& options);

/// Makes a key and asks for its certificate, pinning the controller's root; says the key's
/// fingerprint on the console, for a person who must approve it. Errors: Denied (refused, or
/// another controller), Unavailable, Timeout
Async<Identity> enroll(AgentOptions options, ClientFactory clients);

inline constexpr const char* kCertificatePath = "/agent/v1/certificate";
inline constexpr const char* kRenewalPath =
    "/agent/v1/renewal";  ///< of the RAM OS's own; the other is for the system that it installs

/// A certificate for a key that is to live in the system being installed, or for a renewal of one's
/// own.
Async<wire::EnrollResponse> requestCertificate(io::HttpClient& client, io::Url controller,
                                               std::string csr_pem,
                                               std::string path = kCertificatePath);
Async<Identity> renewIdentity(AgentOptions options, Identity present, io::HttpClient& client);

/// The answer's body, or what went wrong in the controller's own words.
Result<std::string> bodyOf(const Result<io::HttpResponse>& response);
io::HttpRequest postTo(const io::Url& controller, const std::string& path, std::string body);

}  // namespace muster::agent
