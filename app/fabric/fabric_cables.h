// SPDX-License-Identifier: Apache-2.0
// The declared fabric cable by cable, with what the newest look at it and at its counters has said
// (fabric/kept_report.h). Nothing is discovered.
#pragma once

#include "fabric/kept_report.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {
struct Topology;
}

namespace muster::app {

enum class CableState {
  NotSeen,  ///< nobody has looked, or the look gave no answer
  AsDeclared,
  Deviates,
  Excused  ///< it deviates, and the declaration excuses it
};
std::string_view wordOf(CableState state);

struct CableFault {
  std::string kind, declared, found;
  std::string repair;  ///< the sentence for the technician
};

struct CableHealth {
  std::string grade;  ///< good, warning, unproven, bad
  std::vector<std::string> complaints;
  std::string advice, transceiver;
};

/// A port, by its device's node description and its number.
struct CableEnd {
  std::string node;
  int number = 0;
};

struct FabricCable {
  CableEnd a, b;            ///< b.node: "" of a cable that is not declared
  std::string width_speed;  ///< declared
  int level = 0;            ///< of its lower switch: 1 has the HCAs; 0: unknown
  CableState state = CableState::NotSeen;
  std::vector<CableFault> faults;
  std::optional<CableHealth> health;
  bool isFaulty() const {
    return state == CableState::Deviates || (health && health->grade != "good");
  }
};

struct FabricLevel {
  int level = 0;  ///< 0: switches that no path from a leaf reaches
  std::vector<std::string> switches;
  std::size_t cables = 0;  ///< of its switches: those to the level above and, of leaves, to HCAs
  std::size_t deviating = 0, bad = 0;
};

struct FabricView {
  std::vector<FabricLevel> levels;  ///< leaves first
  std::vector<FabricCable> cables;  ///< in the order of the declaration; then what is not declared
  std::size_t switches = 0, hcas = 0;
};

/// Pure. What a report says of devices and ports that are not declared becomes cables of their own.
FabricView fabricView(const fabric::Topology& declared,
                      const std::optional<fabric::KeptReport>& diff,
                      const std::optional<fabric::KeptReport>& health);

}  // namespace muster::app
