// SPDX-License-Identifier: Apache-2.0
// The last answers of all BMCs together that may stand for another read. Each BMC knows its own
// only weakly: what a fleet of ten thousand answered last would stay in memory, and is of use for
// half a second.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace muster::bmc {

class RecentReads {
 public:
  static constexpr std::size_t kKept = 1'024;

  /// The oldest is let go of when there are too many.
  void keep(std::shared_ptr<const void> read) {
    if (kept_.size() < kKept) {
      kept_.push_back(std::move(read));
      return;
    }
    kept_[oldest_] = std::move(read);
    oldest_ = (oldest_ + 1) % kKept;
  }

 private:
  std::vector<std::shared_ptr<const void>> kept_;
  std::size_t oldest_ = 0;
};

}  // namespace muster::bmc
