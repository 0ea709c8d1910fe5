// SPDX-License-Identifier: Apache-2.0
// How far the work of an io_context is behind its machines: what holds back limits that grow by
// time (adaptive_limit.h).
#pragma once

#include <boost/asio/execution_context.hpp>

#include <chrono>

namespace muster::lifecycle {

/// One of each io_context. Whoever gives places to short requests says how long they were waited
/// for. Control thread only.
class Backlog final : public boost::asio::execution_context::service {
 public:
  static inline boost::asio::execution_context::id id;
  explicit Backlog(boost::asio::execution_context& owner) : service(owner) {}

  void waited(std::chrono::duration<double> wait) {
    seconds_ += kFresh * (wait.count() - seconds_);
  }
  /// Requests wait for each other, not for machines: more machines at once would only lengthen the
  /// queue.
  bool isBehind() const { return seconds_ > kBehindSeconds; }

 private:
  static constexpr double kFresh =
      0.02;  ///< weight of a new wait: some fifty requests say what is usual
  static constexpr double kBehindSeconds = 0.5;

  void shutdown() override {}
  double seconds_ = 0;
};

}  // namespace muster::lifecycle
