// SPDX-License-Identifier: Apache-2.0
// The tester tested: every kind of fault is put into a device, and the whole engine must say so.
// And without a fault it must pass.
#pragma once

#include "validate/burn/engine.h"

namespace muster::burn {

struct SelfTestRow {
  std::string fault;  ///< "fp32 output bit 17"
  bool caught = false;
  std::string said;  ///< the first finding, or what was said instead
};
struct SelfTest {
  std::vector<SelfTestRow> rows;
  int below_rounding =
      0;  ///< flips in random data too small to differ from rounding; not counted as faults
  bool good() const;           ///< there are rows, and all of them are as they must be
  std::string missed() const;  ///< what was not caught; empty: nothing
};

/// `every_bit`: each bit of a value and of a word; else a few of them. Effect: loads the device for
/// seconds; leaves no fault behind
/// `watch`: its `on_hang` and `hang_limit` hold for the self-test too; the rest is not read.
SelfTest selfTest(Devices& devices, std::size_t which, bool every_bit, const Options& watch = {});

}  // namespace muster::burn
