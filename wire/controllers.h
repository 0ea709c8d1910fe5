// SPDX-License-Identifier: Apache-2.0
// The controllers of a site as an agent sees them: it speaks to one, and tries the others in turn
// when that one fails.
#pragma once

#include "base/io/http.h"
#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

inline constexpr std::size_t kMaxControllers = 8;

/// "https://10.20.0.1:8443,https://10.20.0.2:8443", in the order to try.
/// Errors: InvalidInput (nothing, no URL, not https, the same one twice, more than kMaxControllers)
Result<std::vector<io::Url>> parseControllers(std::string_view text);
std::string toString(const std::vector<io::Url>& controllers);

inline constexpr int kTriesOfTheSame = 3;

/// Whose turn it is. The one that answers stays; one that has broken off a conversation is asked a
/// few times more before the others, since it may only be starting anew, but not one that has kept
/// silent: its machine may be away, and every try costs a time-out.
class Controllers {
 public:
  explicit Controllers(std::vector<io::Url> urls) : urls_(std::move(urls)) {}

  const io::Url& present() const { return urls_[at_]; }
  const std::vector<io::Url>& all() const { return urls_; }
  bool several() const { return urls_.size() > 1; }
  /// The present one has answered since it became so.
  bool proven() const { return proven_; }

  void answered();
  /// The present one did not answer as it should. Answers whether the pause before the next try is
  /// to grow: the same one again, or all were tried.
  bool failed(bool silent);
  /// Others than were known: the present one stays, also when they do not name it. Answers whether
  /// anything is new.
  bool learn(const std::vector<io::Url>& urls);

 private:
  void next();

  std::vector<io::Url> urls_;
  std::size_t at_ = 0;
  std::size_t failures_ = 0;  ///< of this round
  int again_ = 0;             ///< so often the present one is tried before the next
  bool proven_ = false;
};

}  // namespace muster::wire
