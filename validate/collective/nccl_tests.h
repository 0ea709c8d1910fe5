// SPDX-License-Identifier: Apache-2.0
// The output of nccl-tests (and rccl-tests, which print the same), read strictly: text or -J JSON.
// What is not there, no number, or wrong data is an error or a count, never a pass.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::collective {

struct Measured {
  double microseconds = 0, algbw_gbytes_per_s = 0, busbw_gbytes_per_s = 0;
  std::optional<long> wrong;  ///< values; none: the program did not look ("N/A")
};
struct TestRow {
  std::uint64_t bytes = 0;
  std::optional<Measured> out_of_place, in_place;  ///< one of them at least
};
/// A size as the program's options -b and -e take it: "8", "512M", "8G". Bytes; nullopt: another
/// word.
std::optional<double> messageBytes(std::string_view text);

struct NcclTest {
  std::vector<TestRow> rows;
  long out_of_bounds = 0;
  double average_busbw = 0;          ///< GB/s
  std::vector<std::string> devices;  ///< "HOST 0000:1b:00" of each rank, as it was printed
  std::string program;               ///< "all_reduce_perf"; "": it does not say
  /// Every result that this program can check was checked. All-to-all and send-receive never check
  /// what they do in place: there the other placement alone counts.
  bool checked = false;
  /// At the largest size, the slower of both placements that were checked. GB/s
  double bestBusbw() const;
  std::uint64_t largestBytes() const;
  long wrongValues() const;
  /// How many different GPUs took part; two ranks on one GPU are one.
  std::size_t gpus() const;
};

/// Text of any release: columns are taken from the table's own heading, lines may carry a prefix of
/// mpirun, srun or kubectl. JSON of any release (2.17 and later).
/// Errors: Corrupt, with what it is instead: no table, cut off, two tables (ranks that know nothing
/// of each other), a failure of NCCL in its own words, another unit, times of the CPU.
/// `program`: what was run, where the output does not say it (before 2.17).
/// Source: nccl-tests' src/util.cu and src/common.cu, from 2.0 to 2.20; rccl-tests' src/common.cu
Result<NcclTest> parseNcclTests(std::string_view output, std::string_view program = {});

}  // namespace muster::collective
