// SPDX-License-Identifier: Apache-2.0
// A baseline's constraints over versions that are numbered: what the search for an order asks many
// thousand times. Words for people are made from the constraints themselves (firmware/solver.cc).
#pragma once

#include "firmware/comparable_versions.h"
#include "inventory/model/firmware.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::firmware {

/// What a component, or a probe of the running system, may become: its running version first, then
/// one after the other.
struct VersionLine {
  std::string name;
  std::vector<std::string> versions;
};

/// Of each line: which of its versions it has.
using Places = std::vector<std::size_t>;

class ConstraintTable {
 public:
  ConstraintTable(const inventory::FirmwareBaseline& baseline, const ComparableVersions& order,
                  const std::vector<VersionLine>& lines);

  /// Whether the lines `moving` may each go one version on: no constraint is broken that was not
  /// broken before, whichever of them have gone.
  bool mayMove(const Places& at, const std::vector<std::size_t>& moving) const;
  std::size_t lines() const { return rows_of_.size(); }

 private:
  struct Literal {
    std::size_t line = 0, place = 0;
    bool alone = false;  ///< breaks the constraint whatever the other side is
  };
  struct Row {
    std::vector<Literal> left,
        right;  ///< versions it is about; versions that break it beside those
  };
  struct State {
    const Places& at;
    const std::vector<std::size_t>& moving;
    bool possible(const Literal& literal) const;
  };
  static bool broken(const Row& row, const State& state);

  std::vector<Row> rows_;
  std::vector<std::vector<std::size_t>> rows_of_;  ///< of each line
};

/// Names of the running system's probes, which may not be there at all: a driver that is not
/// installed breaks nothing.
bool isProbe(std::string_view name);

}  // namespace muster::firmware
