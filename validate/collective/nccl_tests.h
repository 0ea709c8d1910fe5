// SPDX-License-Identifier: Apache-2.0
// The output of nccl-tests (and rccl-tests, which print the same), read strictly: text or -J JSON.
// What is not there, no number, or wrong data is an error or a count, never a pass.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::collective {

struct Measured {
  double microseconds = 0, algbw_gbytes_per_s = 0, busbw_gbytes_per_s = 0;
  long wrong = 0;  ///< values that are not what they must be
};
struct TestRow {
  std::uint64_t bytes = 0;
  Measured out_of_place, in_place;
};
struct NcclTest {
  std::vector<TestRow> rows;
  long out_of_bounds = 0;
  double average_busbw = 0;  ///< GB/s
  bool checked = false;      ///< every row has had its data checked

  double bestBusbw()
      const;  ///< of the largest message that there is, the slower of both placements
};

/// Errors: Corrupt: no table, a row or footer that cannot be read, a number that is not finite, a
/// bandwidth of zero for a message of more than zero bytes, a bandwidth that its own time
/// contradicts (another unit)
Result<NcclTest> parseNcclTests(std::string_view output);

}  // namespace muster::collective
