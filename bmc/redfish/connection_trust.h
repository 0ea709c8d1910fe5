// SPDX-License-Identifier: Apache-2.0
// Whom a session's connections trust: the certificate or the CA that the inventory declares, else
// the certificate of first contact. No secret is sent before that is fixed, and none to anybody
// else afterwards: the client refuses in the handshake.
#pragma once

#include "base/io/http.h"
#include "bmc/arbiter.h"
#include "bmc/trust.h"
#include "inventory/model/bmc_trust.h"

#include <functional>
#include <memory>
#include <string>

namespace muster::bmc {

using HttpClientFactory = std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)>;

class ConnectionTrust {
 public:
  struct Options {
    std::string address;                ///< "https://10.20.250.1"
    inventory::BmcTrust declared = {};  ///< what the inventory says of its certificate
    inventory::BmcTrustPolicy policy =
        inventory::BmcTrustPolicy::FirstContact;  ///< where it says nothing
    std::string first_pin =
        {};  ///< first contact was elsewhere, without a secret, and saw this certificate
  };

  ConnectionTrust(Options options, TrustMemory& memory, lifecycle::Journal& journal,
                  HttpClientFactory make_client)
      : options_(std::move(options)),
        memory_(memory),
        journal_(journal),
        make_client_(std::move(make_client)) {}

  /// Fixes whom connections trust; on first contact by one request without any secret.
  /// Errors: Denied, those of the connection and of the store
  Async<void> ensure();
  /// After ensure().
  std::unique_ptr<io::HttpClient> makeClient() const { return make_client_(tls()); }
  /// The connection of first contact, to be used on; null: there was none, or it was taken.
  std::unique_ptr<io::HttpClient> takeFirst() { return std::move(first_); }

  /// What an answer that never came means: another certificate than the pinned one is a refusal, or
  /// the expected new one, which is pinned from then on.
  Error evaluate(io::HttpClient& client, Error error);
  /// Changes when evaluate() pins another certificate; "": a CA is trusted.
  const std::string& pinned() const { return pinned_; }

  void noteShown(std::string fingerprint) { shown_ = std::move(fingerprint); }
  /// SHA-256 of the certificate that was shown and trusted last; "": none yet.
  const std::string& shown() const { return shown_; }
  const inventory::BmcTrust& declared() const { return options_.declared; }

 private:
  Async<void> firstContact();
  io::TlsTrust tls() const;

  Options options_;
  TrustMemory& memory_;
  lifecycle::Journal& journal_;
  HttpClientFactory make_client_;
  AsyncSemaphore one_at_a_time_{1};
  bool fixed_ = false;
  std::string pinned_;
  std::string shown_;
  std::unique_ptr<io::HttpClient> first_;
};

}  // namespace muster::bmc
