// SPDX-License-Identifier: Apache-2.0
// The machine's TPM 2.0 as the agent needs it, by tpm2-tools (adr/0026). Calls block for a second
// or two: a machine that enrolls has nothing else to do.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::agent {

class Tpm {
 public:
  virtual ~Tpm() = default;
  struct Keys {
    std::string ek_public, ek_certificate,
        ak_public;  ///< the certificate is empty where the TPM holds none
  };
  /// The TPM's endorsement key (RSA 2048, always the same) and a new attestation key in it. Errors:
  /// NotFound (no TPM), Internal
  virtual Result<Keys> makeKeys() = 0;
  /// Opens what was made for these keys. Errors: Denied (it was made for others)
  virtual Result<std::string> activate(const std::string& id_object,
                                       const std::string& encrypted_secret) = 0;
  struct Quote {
    std::string quote, signature;
    std::map<int, std::string> pcrs;
  };
  virtual Result<Quote> quote(const std::vector<int>& pcrs, const std::string& qualifying_data) = 0;
};

/// `work_folder` holds contexts of keys, which are worth nothing outside the TPM. `tcti`: how the
/// tools reach it.
std::unique_ptr<Tpm> makeTpmTools(std::filesystem::path work_folder, std::string tcti);

}  // namespace muster::agent
