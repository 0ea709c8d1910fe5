// SPDX-License-Identifier: Apache-2.0
#include "signer/certificate_key.h"

#include "base/io/trusted_keys.h"
#include "signer/local_signer.h"

#include <fmt/format.h>

namespace muster::signer {

CertificateKey::CertificateKey(const io::SigningKey& key)
    : public_pem(key.public_pem),
      signer(std::make_shared<const LocalSigner>(LocalKeys{key, std::nullopt})) {}

std::string CertificateKey::id() const { return io::publicKeyIds(public_pem).front(); }

Result<std::string> CertificateKey::sign(Statement statement, std::string_view text,
                                         std::string_view bytes) const {
  TRY(signature, signer->sign(statement, text));
  if (!io::verify(io::publicPems(public_pem).front(), bytes, signature))
    return fail(
        ErrorCode::Conflict,
        fmt::format("the signer does not sign with key {}, which is this state folder's: it "
                    "was rotated at this moment, or the signer has another site's key; "
                    "`muster key list` and `muster doctor` say more",
                    id()));
  return std::move(signature);
}

}  // namespace muster::signer
