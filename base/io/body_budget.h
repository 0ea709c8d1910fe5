// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: the memory that the bodies of all requests may hold together.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

namespace muster::io {

/// Counted as bytes arrive, not as they are declared: a client holds what it has sent. One client
/// gets at most a share.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t limit_bytes) : limit_(limit_bytes) {}

  std::size_t used() const { return used_; }
  bool take(const std::string& client, std::size_t bytes) {
    if (bytes > limit_ - used_) return false;
    auto& own = by_client_[client];
    if (own + bytes > limit_ / kShares) {
      if (own == 0) by_client_.erase(client);
      return false;
    }
    own += bytes;
    used_ += bytes;
    return true;
  }
  void give(const std::string& client, std::size_t bytes) {
    used_ -= bytes;
    const auto own = by_client_.find(client);
    own->second -= bytes;
    if (own->second == 0) by_client_.erase(own);
  }

 private:
  static constexpr std::size_t kShares =
      4;  ///< so that one client alone cannot have the others refused
  std::size_t limit_, used_ = 0;
  std::unordered_map<std::string, std::size_t> by_client_;
};

class BodyCharge {
 public:
  BodyCharge(std::shared_ptr<BodyBudget> budget, std::string client)
      : budget_(std::move(budget)), client_(std::move(client)) {}
  BodyCharge(const BodyCharge&) = delete;
  ~BodyCharge() {
    if (bytes_ > 0) budget_->give(client_, bytes_);
  }
  bool grow(std::size_t bytes) {
    if (!budget_->take(client_, bytes)) return false;
    bytes_ += bytes;
    return true;
  }

 private:
  std::shared_ptr<BodyBudget> budget_;
  std::string client_;
  std::size_t bytes_ = 0;
};

}  // namespace muster::io
