// SPDX-License-Identifier: Apache-2.0
// BMCs asked on behalf of the API: one answers within seconds, within minutes or not at all, so
// they are asked beside the reader's thread. What came of it is read from here.
#pragma once

#include "api/problem.h"
#include "base/ids.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace muster::api {

/// `Row`: what is known of one machine; its member `state` is "asking" while it is worked on.
template <class Row>
class BmcDesk {
 public:
  BmcDesk() = default;
  BmcDesk(const BmcDesk&) = delete;
  BmcDesk& operator=(const BmcDesk&) = delete;
  /// What has not begun does not begin any more; what has is waited for.
  ~BmcDesk() {
    if (!threads_) return;
    threads_->stop();
    threads_->join();
  }

  Row row(const NodeName& node) {
    const std::scoped_lock lock(mutex_);
    const auto found = rows_.find(node);
    return found == rows_.end() ? Row{} : found->second;
  }

  /// `work` runs on a thread of the desk's; one at a time for a machine. `before`: once it is known
  /// that it will. Errors: 409, those of `before`
  std::expected<void, Problem> ask(const NodeName& node, Row meanwhile, std::function<Row()> work,
                                   const std::function<Result<void>()>& before = {}) {
    const std::scoped_lock lock(mutex_);
    const auto known = rows_.find(node);
    if (known != rows_.end() && known->second.state == "asking")
      return std::unexpected(Problem(409, "conflict", "its BMC is being asked already",
                                     "look what comes of it, and ask again then"));
    if (asking_ >= kMostAsking)
      return std::unexpected(
          Problem(409, "conflict", "too many BMCs are asked already", "try again in a minute"));
    if (before) TRY_OK(before());
    if (rows_.size() >= kMostKnown)
      std::erase_if(rows_, [](const auto& each) { return each.second.state != "asking"; });
    rows_[node] = std::move(meanwhile);
    ++asking_;
    if (!threads_) threads_.emplace(kMostAsking);  // none waits for another's BMC
    boost::asio::post(*threads_, [this, node, work = std::move(work)] {
      auto row = work();
      const std::scoped_lock again(mutex_);
      rows_[node] = std::move(row);
      --asking_;
    });
    return {};
  }

 private:
  static constexpr std::size_t kMostAsking = 64, kMostKnown = 2'000;

  std::mutex mutex_;
  std::map<NodeName, Row> rows_;
  std::size_t asking_ = 0;
  std::optional<boost::asio::thread_pool> threads_;  ///< once something was asked
};

}  // namespace muster::api
