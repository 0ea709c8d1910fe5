// SPDX-License-Identifier: Apache-2.0
#include "signer/local_signer.h"

#include "signer/forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster::signer {

Result<LocalSigner::Signed> LocalSigner::signedAs(Statement statement,
                                                  std::string_view text) const {
  if (!keys_.certificates) return fail(ErrorCode::Internal, "the key for certificates is not here");
  const auto& key = *keys_.certificates;
  TRY(form,
      formOf(statement, text, key.id(), clock_ ? std::optional(clock_->now()) : std::nullopt));
  TRY(signature, io::sign(key, form.bytes));
  return Signed{signature, fmt::format("{} {} sha256={} key={}", toString(statement), form.about,
                                       io::sha256Hex(form.bytes), key.id())};
}

Result<LocalSigner::Signed> LocalSigner::certified(const CertificateOrder& order) const {
  if (!keys_.ca) return fail(ErrorCode::Internal, "the CA's key is not here");
  TRY_OK(checkOrder(order));
  if (!order.ca_fingerprint.empty() && order.ca_fingerprint != keys_.ca->fingerprint())
    return fail(ErrorCode::Conflict,
                fmt::format("CA {} signs here, and nodes trust another one: this signer has other "
                            "keys than the state folder's; `muster doctor` says more",
                            keys_.ca->fingerprint()));
  TRY(pem, order.kind == CertificateKind::Agent
               ? keys_.ca->signClient(order.csr_pem, order.name, order.lifetime)
               : keys_.ca->signServer(order.csr_pem, order.name, order.names, order.lifetime));
  TRY(info, io::describeCertificate(pem));
  return Signed{
      pem,
      fmt::format("certificate kind={} name={}{} expires={} sha256={}", toString(order.kind),
                  order.name,
                  order.names.empty() ? "" : fmt::format(" names={}", fmt::join(order.names, ",")),
                  muster::toString(std::chrono::floor<std::chrono::milliseconds>(info.not_after)),
                  info.sha256_fingerprint)};
}

Result<std::string> LocalSigner::sign(Statement statement, std::string_view text) const {
  TRY(done, signedAs(statement, text));
  return std::move(done.answer);
}

Result<std::string> LocalSigner::certify(const CertificateOrder& order) const {
  TRY(done, certified(order));
  return std::move(done.answer);
}

}  // namespace muster::signer
