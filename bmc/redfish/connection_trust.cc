// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/connection_trust.h"

#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"

namespace muster::bmc {

Async<void> ConnectionTrust::ensure() {
  if (fixed_) co_return Result<void>();
  auto permit = co_await one_at_a_time_.enter();
  if (fixed_) co_return Result<void>();
  const auto& declared = options_.declared;
  if (!declared.pin.empty()) {
    CO_TRY(holds, memory_.pinInPlaceOf(declared.pin));
    pinned_ = holds;
  } else if (declared.ca_pem.empty()) {
    CO_TRY_OK(co_await firstContact());
  }
  fixed_ = true;
  co_return Result<void>();
}

/// One request without any secret. From then on the client insists on the certificate that it saw,
/// and it is stored before anything is sent.
Async<void> ConnectionTrust::firstContact() {
  const bool must_be_declared = options_.policy == inventory::BmcTrustPolicy::Declared;
  if (!must_be_declared) {
    CO_TRY(known, memory_.pin());
    if (known) {
      pinned_ = *known;
      co_return Result<void>();
    }
  }
  std::string seen = must_be_declared ? std::string() : options_.first_pin;
  std::unique_ptr<io::HttpClient> client;
  if (seen.empty()) {
    CO_TRY(url, io::Url::parse(options_.address + "/redfish/v1/"));
    client = make_client_(io::TlsTrust{.accept_first = true});
    CO_TRY_OK(co_await client->send(io::HttpRequest{.url = url}));
    seen = client->peerFingerprint();
    if (seen.empty())
      co_return fail(ErrorCode::Denied,
                     "the BMC at " + options_.address +
                         " showed no TLS certificate; muster talks to BMCs by https only");
    if (must_be_declared) co_return fail(memory_.undeclared(options_.address, seen));
  }
  journal_.attach(co_await asio::this_coro::executor);
  CO_TRY_OK(co_await memory_.setPin(journal_, seen));
  pinned_ = seen;
  first_ = std::move(client);
  co_return Result<void>();
}

io::TlsTrust ConnectionTrust::tls() const {
  if (pinned_.empty())
    return {.ca_pem = options_.declared.ca_pem};  // trusts nobody where no CA is declared either
  return {.pinned_fingerprint = pinned_};
}

Error ConnectionTrust::evaluate(io::HttpClient& client, Error error) {
  if (error.code() != ErrorCode::Denied) return error;
  const auto& address = options_.address;
  const auto& declared = options_.declared;
  const std::string shown = client.peerFingerprint();
  const bool by_ca = pinned_.empty();
  if (!by_ca) {
    auto expected = memory_.promotePin(shown, declared.pin);
    if (!expected) return std::move(expected).error();
    if (*expected) {
      pinned_ = shown;
      return Error(ErrorCode::Unavailable,
                   "the BMC at " + address + " shows the certificate that was installed on it");
    }
  }
  if (!shown.empty() && shown != (by_ca ? shown_ : pinned_)) {
    if (by_ca) return memory_.notOfCa(address, declared.ca_file, shown, error.text());
    return declared.pin.empty() ? memory_.pinMismatch(address, pinned_, shown)
                                : memory_.declaredMismatch(address, pinned_, shown);
  }
  return Error(ErrorCode::Unavailable,
               error.str());  // TLS broke off, as it does while a BMC restarts
}

}  // namespace muster::bmc
