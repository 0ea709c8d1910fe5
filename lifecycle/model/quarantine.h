// SPDX-License-Identifier: Apache-2.0
// Quarantine: nodes that join no pool until a person lifts it. Kept in the store, so it survives
// every restart.
#pragma once

#include "base/clock.h"
#include "lifecycle/model/certificate_gate.h"
#include "lifecycle/store/store.h"

#include <map>
#include <optional>
#include <string>

namespace muster::lifecycle {

inline constexpr std::string_view kQuarantineFacet = "quarantine";  ///< "none", or "held"
inline constexpr std::string_view kQuarantineNone = "none";
inline constexpr std::string_view kQuarantineHeld = "held";

struct QuarantineEntry {
  WallTime since{};
  std::string by;        ///< "muster monitor", or who asked for it
  std::string reason;    ///< one sentence
  std::string evidence;  ///< JSON, or empty
};

class Quarantine {
 public:
  explicit Quarantine(Store& store) : store_(store) {}

  /// Errors: those of the store, Corrupt
  Result<std::map<NodeName, QuarantineEntry>> entries() const;
  Result<std::optional<QuarantineEntry>> find(const NodeName& node) const;
  /// Holds the node, and raises a finding with what to do. One that is held already keeps its first
  /// reason. Answers whether it is new.
  Result<bool> add(const NodeName& node, QuarantineEntry entry);
  /// A person's word only; journaled with who and why. It holds at once; a finding that cannot be
  /// ended now, because another controller works on the node, ends with the next `settle`. Errors:
  /// NotFound (it is not held), InvalidInput (no reason)
  Result<void> remove(const NodeName& node, const std::string& who, const std::string& reason,
                      WallTime at);
  /// Makes findings what the list says: raised where one is missing, ended where its node was let
  /// go. For `muster monitor` and whoever observes: a process may have died between the list and
  /// the finding. What another controller works on is left for the next time.
  Result<void> reconcileFindings();

 private:
  Store& store_;
};

/// Nobody joins from quarantine, whatever certificate it has. Fails closed: an unreadable list
/// lets nobody in.
class QuarantineGate final : public CertificateGate {
 public:
  QuarantineGate(const CertificateGate& certificates, Store& store)
      : certificates_(certificates), quarantine_(store) {}
  Result<void> requireValid(const NodeName& node) const override;

 private:
  const CertificateGate& certificates_;
  Quarantine quarantine_;
};

/// What a person does about it.
std::string quarantineRemoveAdvice(const NodeName& node);

}  // namespace muster::lifecycle
