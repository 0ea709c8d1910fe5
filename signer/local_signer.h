// SPDX-License-Identifier: Apache-2.0
// Signs in this process, with keys that it has read.
#pragma once

#include "base/clock.h"
#include "base/io/crypto.h"
#include "signer/site_signer.h"

#include <memory>

namespace muster::signer {

struct LocalKeys {
  std::optional<io::SigningKey> certificates;
  std::optional<io::CertificateAuthority> ca;
};

/// Also says what it has signed, for a log. `clock`: null where the clock of whoever asks is
/// believed; it must outlive this object.
class LocalSigner final : public SiteSigner {
 public:
  explicit LocalSigner(LocalKeys keys, const Clock* clock = nullptr)
      : keys_(std::move(keys)), clock_(clock) {}
  Result<std::string> sign(Statement statement, std::string_view text) const override;
  Result<std::string> certify(const CertificateOrder& order) const override;

  struct Signed {
    std::string answer, about;
  };
  Result<Signed> signedAs(Statement statement, std::string_view text) const;
  Result<Signed> certified(const CertificateOrder& order) const;

 private:
  LocalKeys keys_;
  const Clock* clock_;
};

}  // namespace muster::signer
