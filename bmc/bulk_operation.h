// SPDX-License-Identifier: Apache-2.0
// The same work on many BMCs: one goes first, then some at a time, and several failures stop the
// rest. For changes that lock people out when they are wrong (passwords, certificates).
#pragma once

#include "base/ids.h"
#include "base/io/process.h"
#include "bmc/bmc.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster::bmc {

inline constexpr std::size_t kBulkOperationAtOnce = 16;
inline constexpr std::size_t kBulkOperationFailures = 3;  ///< so many, and no further BMC is begun

struct BulkOperationReport {
  std::vector<NodeName> done, not_started;  ///< not_started: after too many failures
  std::map<NodeName, Error> failed;
};

/// `told` is called for each as it ends. Nothing of `work` outlives the answer, or its
/// cancellation.
Async<BulkOperationReport> runBulkOperation(
    std::vector<NodeName> nodes, std::function<Async<void>(NodeName)> work,
    std::function<void(const NodeName&, const Result<void>&)> told);

/// Request (PEM) → certificate and chain (PEM).
using CertificateSigner = std::function<Async<std::string>(std::string request_pem)>;
/// By somebody's program: the request is its standard input.
CertificateSigner signBy(std::vector<std::string> words, io::ProcessRunner& processes);
/// The BMC makes a key, somebody signs, the BMC shows it from then on and it is what is trusted.
/// Errors: those of Bmc and of the signer; Corrupt (what was signed is no certificate)
Async<void> certify(Bmc& bmc, CertificateSubject subject, CertificateSigner sign);

}  // namespace muster::bmc
