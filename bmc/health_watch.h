// SPDX-License-Identifier: Apache-2.0
// What BMCs tell of their machines by themselves: sensors beyond their limits, leaks, the event
// log. A phase whose facts others evaluate by
// (`health.bmc`: "ok", or "ACTION:symptom@sensor,…"), and whose reading never holds up anybody's
// look: BMCs are slow, so they are read beside, each in its turn, and observe() answers what was
// read last.
//
// Store value bmc.log.NODE: where the event log was read to, and what of weight was new since
// (JSON).
#pragma once

#include "bmc/bmc.h"
#include "lifecycle/model/phase.h"

namespace muster::bmc {

inline constexpr std::string_view kBmcHealthFacet = "health.bmc";
inline constexpr std::string_view kBmcLogFacet = "bmc.log";  ///< of findings about new entries
inline constexpr std::chrono::minutes kHealthEvery{5};       ///< a BMC is read so often
inline constexpr std::chrono::seconds kHealthConfirm{
    60};  ///< and so soon again, when something looks wrong
inline constexpr std::size_t kHealthAtOnce = 32;
inline constexpr std::chrono::hours kLogSymptomFor{24};

/// What is wrong, before anybody says what to do about it: bmc.leak, bmc.sensor-critical,
/// bmc.sensor-warning, bmc.log-critical, bmc.log-warning.
struct BmcSymptom {
  std::string id, device, text;
  friend auto operator<=>(const BmcSymptom&, const BmcSymptom&) = default;
};
/// Of the readings alone. Pure.
std::vector<BmcSymptom> symptomsOf(const std::vector<SensorReading>& readings);

/// What a symptom asks for.
struct SymptomResponse {
  int rank = 0;  ///< 0: it is only watched
  std::string action, advice;
};
using SymptomPolicy = std::function<SymptomResponse(const BmcSymptom&)>;

class HealthWatch : public lifecycle::Phase {
 public:
  /// Reads the BMCs for ever. Run beside whoever stays; without it the phase answers nothing new.
  virtual Task<void> run() = 0;
  /// Something has happened there: it is read at once.
  virtual void notify(const NodeName& node) = 0;
};

/// All are borrowed. Only BMCs by https are read.
std::unique_ptr<HealthWatch> makeHealthWatch(const inventory::Cluster& cluster, BmcFleet& bmcs,
                                             lifecycle::Store& store, Clock& clock,
                                             SymptomPolicy evaluate);

}  // namespace muster::bmc
