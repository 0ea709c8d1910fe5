// SPDX-License-Identifier: Apache-2.0
// Facade of validate/: gates, findings, certificates.
#pragma once

#include "base/io/crypto.h"
#include "gateway/agent_gateway.h"
#include "lifecycle/model/certificate_gate.h"
#include "lifecycle/model/phase.h"
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/store.h"
#include "validate/bmc_gate.h"
#include "validate/checks/expectations.h"
#include "validate/revocations.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::validate {

struct Certificate {
  NodeName node;
  std::string scope_hash;  ///< SHA-256 over what it is bound to
  std::map<std::string, std::string>
      bound;                     ///< facet → value: serials, image digest, firmware, drivers, gates
  std::string inventory_digest;  ///< of the node's declaration (its profile and what that names)
  WallTime proven_at{};  ///< the oldest gate pass that it rests on; its life counts from there
  WallTime issued_at{}, expires_at{};
  std::map<std::string, std::string>
      peer_baseline;  ///< gate → how rates were evaluated that no table has an expectation for
  std::string override_by, override_reason;  ///< a person's word in place of gates that have not
                                             ///< passed; empty: they have
  std::string key_id;
  std::string signature;  ///< Ed25519 over the canonical JSON without it, base64
  bool isOverride() const { return !override_by.empty(); }
  /// What a list of revocations names it by: SHA-256 of what is signed, 32 hex digits.
  std::string id() const;
  /// Only the signature; what else a certificate has to be is verifyOffline's.
  bool isSignedBy(std::string_view public_pem) const;
  std::string toJson() const;
  static Result<Certificate> fromJson(std::string_view text);
};

inline constexpr std::chrono::hours kMaxOverride{72};  ///< life of an override at most

/// What can be said of a certificate far from its controller, with the public key alone: signature,
/// expiry, revocation. Whether what it is bound to still holds is for who can look at the node:
/// `bound` says what to compare. Errors: Denied with the reason
Result<void> verifyOffline(const Certificate& certificate, std::string_view public_pem,
                           WallTime now, const RevocationList& revocations);

/// What was written for carrying.
struct Exported {
  int certificates = 0;
  std::int64_t list_number = 0;  ///< 0: nothing was ever revoked, the list is empty
};

/// All controllers of a store see the same certificates and revocations.
class CertificateStore : public lifecycle::CertificateGate {
 public:
  virtual Result<std::optional<Certificate>> find(const NodeName& node) const = 0;
  /// Signs it, to live from `proven_at` on: signing anew proves nothing anew.
  /// Errors: Denied when that life is over, Conflict (another controller works on the node, or the
  /// site has another key)
  virtual Result<Certificate> issue(Certificate unsigned_certificate) = 0;
  /// Signature, expiry, revocation, and what is bound against the facts now.
  virtual Result<void> verify(const Certificate& certificate) const = 0;
  /// Whether everything holds but the declaration, which has changed since it was signed.
  virtual bool isVoidByDeclaration(const Certificate& certificate) const = 0;
  /// The certificate of the node counts no more, nor do the passes that it had until now. Errors:
  /// InvalidInput (no reason)
  virtual Result<void> revoke(const NodeName& node, const std::string& by,
                              const std::string& reason) = 0;
  /// Passes up to this time count no more; nullopt: no revocation. One that cannot be read is an
  /// error, never none.
  virtual Result<std::optional<WallTime>> revokedAt(const NodeName& node) const = 0;
  /// Writes NODE.json of every declared node that has a certificate, and the signed list of
  /// revocations.
  virtual Result<Exported> exportTo(const std::filesystem::path& folder) const = 0;
};

/// `folder`: where copies lie, for carrying.
std::unique_ptr<CertificateStore> makeCertificateStore(const inventory::Cluster& cluster,
                                                       lifecycle::Store& store, Clock& clock,
                                                       signer::CertificateKey key,
                                                       std::filesystem::path folder);

/// A node's place in its pool as it is now (the fact `pool`, with evidence {"jobs": bool}). cli
/// wires it to the pool's own look.
using PoolStateReader = std::function<Async<std::vector<lifecycle::Fact>>(lifecycle::Subject)>;

/// What came of one gate on one node, passed or not.
struct GateRecord {
  lifecycle::MeasuredSet measured;
  std::string results;  ///< every check's answer as the agent gave it, JSON
  std::vector<std::string> failures;
};
/// Keeps them; cli wires it to the store's measurements and to files.
using GateSink = std::function<void(GateRecord)>;

/// What other nodes of a SKU have reached, by metric (validate/peer_baseline.h); asked for GPUs
/// that no table knows, and for bits that must be equal.
using PeerBaselines =
    std::function<std::map<std::string, Baseline>(const std::string& sku, const NodeName& but)>;

/// What a node's measurements are compared with: its profile, and the model of its GPUs where it
/// has some.
std::string skuOf(const inventory::Cluster& cluster, const inventory::Node& node,
                  const gateway::AgentGateway& agents);
/// Names as measurements have them: "host.gemm/gemm_gflops"; a check's value "gpu3.sm_mhz" is
/// "gpu.clocks/sm_mhz@gpu3", so that devices are compared with each other.
std::map<std::string, double> numbersOf(const std::vector<wire::CheckResult>& results);

class SynchronizedLoad;  ///< validate/synchronized_load.h

std::unique_ptr<lifecycle::Phase> makeValidatePhase(
    const inventory::Cluster& cluster, gateway::AgentGateway& agents,
    CertificateStore& certificates, lifecycle::Store& store, Clock& clock,
    PoolStateReader pool_state, GateSink record = {}, PeerBaselines baselines = {},
    SynchronizedLoad* synchronized_load = nullptr, BmcView bmc = {});

}  // namespace muster::validate
