// SPDX-License-Identifier: Apache-2.0
// Has the signer's unit sign (signer_server.h has the words).
#pragma once

#include "signer/key_files.h"
#include "signer/site_signer.h"

#include <nlohmann/json_fwd.hpp>

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

namespace muster::signer {

struct SignerClientOptions {
  std::filesystem::path socket;
  /// Whose the socket must be: systemd's, and this process's own user.
  std::vector<uid_t> owners;
  std::chrono::milliseconds patience{5'000};  ///< until an answer
  /// After a time without an answer who asks next is told so at once: who asks may be the control
  /// thread, and have many nodes to ask for.
  std::chrono::milliseconds silence{15'000};
};

class SignerClient final : public SiteSigner {
 public:
  explicit SignerClient(SignerClientOptions options) : options_(std::move(options)) {}
  Result<std::string> sign(Statement statement, std::string_view text) const override;
  Result<std::string> certify(const CertificateOrder& order) const override;
  Result<PublicHalves> publicHalves() const;
  /// As rotateSigningKey, finishSigningRotation, replaceLostSigningKey, of the key for
  /// certificates.
  Result<PublicHalves> rotate() const;
  Result<PublicHalves> finish() const;
  Result<PublicHalves> replaceLost() const;

 private:
  Result<nlohmann::json> ask(const nlohmann::json& request) const;
  Result<PublicHalves> askHalves(const nlohmann::json& request) const;

  SignerClientOptions options_;
  /// Of this client and its copies: until when nobody is asked.
  std::shared_ptr<std::atomic<std::chrono::steady_clock::time_point>> silent_until_ =
      std::make_shared<std::atomic<std::chrono::steady_clock::time_point>>();
};

/// With systemd and this process's user as owners.
SignerClient signerAt(std::filesystem::path socket);

}  // namespace muster::signer
