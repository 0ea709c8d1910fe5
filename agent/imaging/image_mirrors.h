// SPDX-License-Identifier: Apache-2.0
// Which server the next range is asked of, and which are not asked any more. Pure: no I/O, no
// clock.
//
// All mirrors are asked at once, the faster ones more often. A corrupt one (bytes that do not
// verify, another length, no such image) is dropped for the rest; one that does not answer is
// dropped while others do. When nobody is left that answers, those that were only silent are asked
// again: then it was the network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::agent {

class ImageMirrors {
 public:
  enum class Fault { Silent, Corrupt };
  struct Dropped {
    std::string url, why;
  };

  /// At least one; repeated ones count once.
  explicit ImageMirrors(const std::vector<std::string>& urls);

  std::size_t size() const { return mirrors_.size(); }
  const std::string& url(std::size_t mirror) const { return mirrors_[mirror].url; }
  /// How many are still asked.
  std::size_t usable() const;

  /// The one that will be done first, by what it has in flight and how fast it was. Answer with
  /// `delivered` or `failed`.
  std::size_t pick();
  void delivered(std::size_t mirror, std::uint64_t bytes, double seconds);
  /// Whether the mirror was dropped; the last one never is.
  bool failed(std::size_t mirror, Fault fault, const std::string& why);
  /// Bytes that had come from it did not verify, after `delivered`.
  bool markCorrupt(std::size_t mirror, const std::string& why);

  std::vector<Dropped> dropped() const;

 private:
  struct Mirror {
    std::string url;
    int in_flight = 0, silent = 0;
    double bytes_per_second = 0;  ///< 0: not known yet
    bool dropped = false, corrupt = false;
    std::string why;
  };
  bool drop(Mirror& mirror, Fault fault, const std::string& why);

  std::vector<Mirror> mirrors_;
  std::size_t turn_ = 0;  ///< equals take turns
};

}  // namespace muster::agent
