// SPDX-License-Identifier: Apache-2.0
// How many operations of one kind may be under way: found by trying, as TCP finds a window.
// docs/adr/0014
//
// Only one thing is measured: good operations a second while somebody waited for a place. Steps are
// a few percent apart. The limit doubles while that pays; then it stays at the best step and now
// and then tries the next one above and the next one below. It moves up only for a clear gain and
// down also for a draw, so where more permits bring nothing but longer waits it stays small; a move
// that succeeded is followed by a longer one. Many failures halve it at once. A fixed number is a
// ceiling, never a target.
//
// Pure: time comes in with each call. What the present best brings is measured again and again,
// with a weight that fades, so that it gives way when the other side has changed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace muster::lifecycle {

class AdaptiveLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Bounds {
    std::size_t floor = 1;
    std::size_t start = 4;
    std::size_t ceiling = 1'024;
    /// For operations that take minutes whatever else runs, as boots do: a round of them would be
    /// over when the work is. So long as nothing fails and the controller keeps up it doubles after
    /// this time too. Zero: only a measured gain doubles it.
    std::chrono::seconds doubles_every{0};
    /// Operations of milliseconds: who waits long for a place shows that the controller does not
    /// keep up (backlog.h).
    bool shows_backlog = false;
    /// With a declared ceiling in the place of this one; it holds for floor and start too.
    Bounds under(std::optional<int> declared) const {
      if (!declared) return *this;
      const auto most = static_cast<std::size_t>(std::max(*declared, 1));
      return {std::min(floor, most), std::min(start, most), most, doubles_every, shows_backlog};
    }
  };
  explicit AdaptiveLimit(Bounds bounds);

  std::size_t limit() const { return steps_[at_].permits; }

  /// The first operation after a time without any begins: what is measured begins with it, not with
  /// its end.
  void resumed(Time now) { beginRound(now); }

  /// An operation has ended. `good`: it succeeded; `wanted`: somebody waits for its place;
  /// `behind`: the controller does not keep up.
  void ended(Time now, bool good, bool wanted, bool behind = false);

 private:
  enum class Mode { Doubling, Staying, TryingUp, TryingDown };
  struct Step {
    std::size_t permits = 1;
    double rate = 0;  ///< good ones a second; 0: not known
  };
  bool doublesByTime(Time now, bool good, bool behind);
  void measured(double rate, double failed_share);
  void compare();
  void doubled(double rate);
  void tryNext(bool up);
  void move(std::size_t step, Mode mode);
  void beginRound(Time now);
  std::size_t stepOf(double permits) const;
  void learn(Step& step, double rate) const;

  std::vector<Step> steps_;
  std::size_t at_ = 0;    ///< in use
  std::size_t best_ = 0;  ///< where it stays between tries
  Mode mode_ = Mode::Doubling;
  int stayed_ = 0;
  std::size_t stride_ = 1;  ///< steps to the next try; doubles while tries succeed
  bool up_next_ = true;

  std::size_t settling_ = 0;  ///< operations still to end that began under another limit
  std::size_t ended_ = 0, good_ = 0, wanted_ = 0;
  Time round_begin_{};

  const std::chrono::seconds doubles_every_;
  Time window_begin_{};
  std::size_t window_ended_ = 0;
};

}  // namespace muster::lifecycle
