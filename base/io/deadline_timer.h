// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: a deadline that is moved far more often than it passes, as that of a
// connection that serves request after request.
#pragma once

#include "base/async/task.h"

#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>

namespace muster::io {

/// A wait that is under way is left alone when the deadline moves on, and looks again when it ends:
/// to set it costs a look at the clock.
class Deadline {
 public:
  Deadline(const asio::any_io_executor& executor, std::function<void()> passed)
      : state_(std::make_shared<State>(executor, std::move(passed))) {}
  Deadline(const Deadline&) = delete;
  ~Deadline() { stop(); }

  void set(std::chrono::milliseconds limit) {
    state_->at = Steady::now() + limit;
    if (!state_->waiting || state_->at < state_->timer.expiry()) wait(state_);
  }
  /// There is none until it is set again; the loop may still have a wait of it.
  void lift() { state_->at = Steady::time_point::max(); }
  void stop() {
    lift();
    if (std::exchange(state_->waiting, false)) state_->timer.cancel();
  }

 private:
  using Steady = std::chrono::steady_clock;
  struct State {
    State(const asio::any_io_executor& executor, std::function<void()> call)
        : timer(executor), passed(std::move(call)) {}
    asio::steady_timer timer;
    std::function<void()> passed;
    Steady::time_point at = Steady::time_point::max();
    bool waiting = false;
  };

  static void wait(const std::shared_ptr<State>& state) {
    state->waiting = true;
    state->timer.expires_at(state->at);
    state->timer.async_wait([weak = std::weak_ptr(state)](boost::system::error_code error) {
      const auto self = weak.lock();
      if (error || !self || !std::exchange(self->waiting, false)) return;
      if (self->at == Steady::time_point::max()) return;
      if (self->at > Steady::now()) return wait(self);
      self->at = Steady::time_point::max();
      self->passed();
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace muster::io
