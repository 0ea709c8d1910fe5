// SPDX-License-Identifier: Apache-2.0
// What goes wrong on threads of one piece of work (no memory, no further thread), for whoever
// waits for them: an exception that leaves a thread would end the program without a report.
#pragma once

#include <exception>
#include <mutex>

namespace muster::burn {

class FirstError {
 public:
  /// On any thread.
  template <class Work>
  void guard(const Work& work) noexcept {
    try {
      work();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  /// When the threads have been joined.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace muster::burn
