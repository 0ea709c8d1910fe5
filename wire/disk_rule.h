// SPDX-License-Identifier: Apache-2.0
// Which disk is meant. The one place that knows: controller (inspection, wipe guard) and agent
// (writer, storage) both ask it.
//
//   serial:X   wwn:X   smallest   size:LOW-HIGH  (size:3TB-, size:400GB-500GB; decimal and binary
//   units)   empty: every disk
//
// A rule says which disks fit; how many there may be is the caller's business, and more than it
// wants is always a refusal.
#pragma once

#include "base/result.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

class DiskRule {
 public:
  /// Errors: InvalidInput with how to write one
  static Result<DiskRule> parse(std::string_view text);

  /// Of these disks, anything with `serial`, `wwn` and `size_bytes`. "smallest" gives all that are
  /// as small as the smallest.
  template <class Disk>
  std::vector<const Disk*> fitting(const std::vector<Disk>& disks) const {
    std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
    for (const Disk& disk : disks) smallest = std::min<std::uint64_t>(smallest, disk.size_bytes);
    std::vector<const Disk*> fits;
    for (const Disk& disk : disks)
      if (fit(disk.serial, disk.wwn, disk.size_bytes, smallest)) fits.push_back(&disk);
    return fits;
  }
  bool any() const { return kind_ == Kind::Any; }

 private:
  enum class Kind { Any, Serial, Wwn, Smallest, Size };
  bool fit(std::string_view serial, std::string_view wwn, std::uint64_t size_bytes,
           std::uint64_t smallest_bytes) const;

  Kind kind_ = Kind::Any;
  std::string id_;
  std::uint64_t low_bytes_ = 0, high_bytes_ = 0;
};

}  // namespace muster::wire
