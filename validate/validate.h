// Facade of validate/: gates, findings, certificates.
#pragma once

#include "agent/protocol/gateway.h"
#include "base/io/crypto.h"
#include "lifecycle/certificate_gate.h"
#include "lifecycle/phase.h"
#include "lifecycle/store.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::validate {

struct Certificate {
  NodeName node;
  std::string basis;                                ///< SHA-256 over what it is bound to
  std::map<std::string, std::string> bound;         ///< facet → value: serials, image digest, firmware, drivers, gates
  std::string inventory_digest;                     ///< of the node's declaration (its profile and what that names)
  WallTime proven_at{};                             ///< the oldest gate pass that it rests on; its life counts from there
  WallTime issued_at{}, expires_at{};
  std::string key_id;
  std::string signature;                            ///< Ed25519 over the canonical JSON without it, base64
  std::string toJson() const;
  static Result<Certificate> fromJson(std::string_view text);
};

/// The words of verify when nothing but the declaration has moved.
inline constexpr std::string_view kDeclarationChanged =
    "the node's declaration has changed since it was signed; validate again: muster apply";

class CertificateStore : public lifecycle::CertificateGate {
 public:
  virtual Result<std::optional<Certificate>> find(const NodeName& node) const = 0;
  /// Signs it, to live from `proven_at` on: signing anew proves nothing anew. Errors: Denied when that life is over
  virtual Result<Certificate> issue(Certificate unsigned_certificate) = 0;
  /// Signature, expiry, and what is bound against the facts now.
  virtual Result<void> verify(const Certificate& certificate) const = 0;
};

std::unique_ptr<CertificateStore> makeCertificateStore(const inventory::Cluster& cluster, lifecycle::Store& store, Clock& clock,
                                                       io::SigningKey key, std::filesystem::path folder);

/// A node's place in its pool as it is now (the fact `pool`, with evidence {"jobs": bool}). cli wires it to the pool's own look.
using PoolLook = std::function<Async<std::vector<lifecycle::Fact>>(lifecycle::Subject)>;

std::unique_ptr<lifecycle::Phase> makeValidatePhase(const inventory::Cluster& cluster, agent::AgentGateway& agents,
                                                    CertificateStore& certificates, lifecycle::Store& store, Clock& clock,
                                                    PoolLook look_at_pool);

}  // namespace muster::validate
