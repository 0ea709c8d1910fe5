// SPDX-License-Identifier: Apache-2.0
// Whom a session's connections trust: the certificate or the CA that the inventory declares, else
// the certificate of first contact. No secret is sent before that is fixed, and none to anybody
// else afterwards: the client refuses in the handshake.
#include "bmc/redfish/session.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"

namespace muster::bmc {

Async<void> RedfishSession::ensureTrust() {
  if (trusted_) co_return Result<void>();
  auto permit = co_await one_pin_.enter();
  if (trusted_) co_return Result<void>();
  const auto& declared = options_.declared;
  if (!declared.pin.empty()) {
    CO_TRY(holds, trust_.pinInPlaceOf(declared.pin));
    pinned_ = holds;
  } else if (declared.ca_pem.empty()) {
    CO_TRY_OK(co_await firstContact());
  }
  trusted_ = true;
  co_return Result<void>();
}

/// One request without any secret. From then on the client insists on the certificate that it saw,
/// and it is stored before anything is sent.
Async<void> RedfishSession::firstContact() {
  const bool must_be_declared = options_.policy == inventory::BmcTrustPolicy::Declared;
  if (!must_be_declared) {
    CO_TRY(known, trust_.pin());
    if (known) {
      pinned_ = *known;
      co_return Result<void>();
    }
  }
  std::string seen = must_be_declared ? std::string() : options_.first_pin;
  std::unique_ptr<io::HttpClient> client;
  if (seen.empty()) {
    CO_TRY(url, io::Url::parse(options_.base_url + "/redfish/v1/"));
    client = make_client_(io::TlsTrust{.accept_first = true});
    CO_TRY_OK(co_await client->send(io::HttpRequest{.url = url}));
    seen = client->peerFingerprint();
    if (seen.empty())
      co_return fail(ErrorCode::Denied,
                     "the BMC at " + address() +
                         " showed no TLS certificate; muster talks to BMCs by https only");
    if (must_be_declared) co_return fail(trust_.undeclared(address(), seen));
  }
  journal_.attach(co_await asio::this_coro::executor);
  CO_TRY_OK(co_await trust_.setPin(journal_, seen));
  pinned_ = seen;
  if (client) idle_.push_back(std::move(client));
  co_return Result<void>();
}

io::TlsTrust RedfishSession::tlsTrust() const {
  if (pinned_.empty())
    return {.ca_pem = options_.declared.ca_pem};  // trusts nobody where no CA is declared either
  return {.pinned_fingerprint = pinned_};
}

Result<io::HttpResponse> RedfishSession::judged(io::HttpClient& client, Error error) {
  if (error.code() != ErrorCode::Denied) return fail(std::move(error));
  const std::string shown = client.peerFingerprint();
  const bool by_ca = pinned_.empty();
  if (!by_ca) {
    TRY(expected, trust_.promotePin(shown, options_.declared.pin));
    if (expected) {
      pinned_ = shown;
      idle_.clear();
      return fail(ErrorCode::Unavailable,
                  "the BMC at " + address() + " shows the certificate that was installed on it");
    }
  }
  if (!shown.empty() && shown != (by_ca ? shown_ : pinned_)) {
    if (by_ca)
      return fail(trust_.notOfCa(address(), options_.declared.ca_file, shown, error.text()));
    return fail(options_.declared.pin.empty() ? trust_.pinMismatch(address(), pinned_, shown)
                                              : trust_.declaredMismatch(address(), pinned_, shown));
  }
  return fail(ErrorCode::Unavailable,
              error.str());  // TLS broke off, as it does while a BMC restarts
}

}  // namespace muster::bmc
