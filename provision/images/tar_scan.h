// SPDX-License-Identifier: Apache-2.0
// Looks at the headers of a tar while its bytes go by, beside libarchive, which takes some of what
// is wrong with them without a word: it cuts a name at a NUL, passes over damaged records of PAX,
// and does not tell an archive that was cut between two members from a whole one. Sources: POSIX
// pax, "ustar Interchange Format" and "pax Header Block"; GNU tar, "Basic Tar Format", "GNU
// Extensions to the Archive Format"
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::provision {

class TarScan {
 public:
  /// The next bytes of the uncompressed archive, in pieces of any size.
  void feed(std::string_view bytes);

  /// What is wrong with what went by: InvalidInput (a NUL in a name, a part of several volumes,
  /// something behind the end), Corrupt (damaged).
  const std::optional<Error>& problem() const { return problem_; }
  /// The block of zeros that ends an archive went by.
  bool ended() const { return state_ == State::Ended; }
  /// It met what it does not know, and looks at nothing any more; libarchive says what is wrong.
  bool lost() const { return state_ == State::Lost; }

 private:
  enum class State { Header, SparseHeader, Collect, Skip, Ended, Lost };

  void onHeader();
  void onCollected();
  void onPaxRecords();
  void onPaxRecord(std::string_view key, std::string_view value);
  void skip(std::uint64_t body_bytes);
  void refuse(ErrorCode code, std::string text);

  State state_ = State::Header;
  std::string block_;  ///< a header that is not whole yet, or what is collected
  std::uint64_t left_bytes_ = 0;
  char collected_type_ = 0;
  std::uint64_t size_after_sparse_ = 0;
  std::optional<std::uint64_t> pax_size_;  ///< of the next member
  std::uint64_t zeros_behind_ = 0;
  std::optional<Error> problem_;
};

}  // namespace muster::provision
