// SPDX-License-Identifier: Apache-2.0
// NCCL on the host, among threads of one process: collectives by their definition, messages through
// boxes. Memory is that of the runtime of the tests.
#pragma once

#include <atomic>
#include <string>

namespace muster::test {

struct FakeNccl {
  int corrupt = -1;                    ///< what this rank gives is off by one in one place
  bool silent = false;                 ///< outputs are never written
  bool remote_error = false;           ///< calls return well, and the error comes behind them
  std::string failing;                 ///< this call fails on every rank: "ncclAllReduce"
  std::atomic<int> communicators = 0;  ///< not ended yet
  std::atomic<int> ids = 0, aborted = 0, destroyed = 0;

  /// No fault, nothing counted; ids go on, and so do communicators that a test has left.
  void reset() {
    corrupt = -1, silent = remote_error = false, failing.clear();
    aborted = destroyed = 0;
  }
};
FakeNccl& fakeNccl();

}  // namespace muster::test
