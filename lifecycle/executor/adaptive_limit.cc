// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/executor/adaptive_limit.h"

#include <algorithm>
#include <utility>

namespace muster::lifecycle {
namespace {

constexpr double kStepRatio =
    1.05;  ///< between neighbouring steps: one of them is at most 2.5 % off
constexpr std::size_t kRoundAtLeast = 32;  ///< operations that a measurement rests on, at least
constexpr std::size_t kRoundTimesLimit =
    2;  ///< … and so many times the limit; once while it doubles, where a gain shows at a glance
constexpr double kEnoughWanted = 0.7;   ///< share of a round's ends at which somebody waited; below
                                        ///< it the limit was not what held
constexpr double kRoundSeconds = 0.25;  ///< … or so long: of what takes a millisecond, many
constexpr int kRoundsBetweenTries = 6;
constexpr double kHopeless = 0.85;  ///< a try that brings less of the best so far is not carried on
constexpr double kClearGain = 1.02;     ///< to move up
constexpr double kDraw = 0.985;         ///< to move down
constexpr double kDoublingGain = 1.25;  ///< twice the permits must bring this to be doubled again
constexpr double kTooManyFailed = 0.2;
constexpr double kFew = 0.5;    ///< share of the permits whose operations end within
                                ///< Bounds::doubles_every when they are long
constexpr double kFresh = 0.4;  ///< weight of a new measurement beside the old ones

}  // namespace

AdaptiveLimit::AdaptiveLimit(Bounds bounds) : doubles_every_(bounds.doubles_every) {
  const auto floor = std::max<std::size_t>(1, bounds.floor),
             ceiling = std::max(floor, bounds.ceiling);
  for (double permits = static_cast<double>(floor); static_cast<std::size_t>(permits) < ceiling;
       permits = std::max(permits + 1, permits * kStepRatio))
    steps_.push_back({static_cast<std::size_t>(permits), 0});
  steps_.push_back({ceiling, 0});
  at_ = best_ = stepOf(static_cast<double>(std::clamp(bounds.start, floor, ceiling)));
}

/// The largest step that is not above.
std::size_t AdaptiveLimit::stepOf(double permits) const {
  auto above = std::find_if(steps_.begin(), steps_.end(), [permits](const Step& step) {
    return static_cast<double>(step.permits) > permits;
  });
  return above == steps_.begin() ? 0 : static_cast<std::size_t>(above - steps_.begin()) - 1;
}

void AdaptiveLimit::beginRound(Time now) {
  ended_ = good_ = wanted_ = 0;
  round_begin_ = now;
}

void AdaptiveLimit::ended(Time now, bool good, bool wanted, bool behind) {
  if (round_begin_ == Time{}) beginRound(now);
  if (wanted && doublesByTime(now, good, behind)) return;
  if (settling_ > 0) {
    if (--settling_ == 0) beginRound(now);
    return;
  }
  ++ended_;
  good_ += good ? 1 : 0;
  wanted_ += wanted ? 1 : 0;
  const double seconds = std::chrono::duration<double>(now - round_begin_).count();
  const auto whole =
      std::max(kRoundAtLeast, (mode_ == Mode::Doubling ? 1 : kRoundTimesLimit) * limit());
  const auto enough_to_despair =
      std::max(kRoundAtLeast / 4, limit() / 2);  // they may all end at once, the first only now
  const bool hopeless = mode_ != Mode::Staying && at_ != best_ && ended_ >= enough_to_despair &&
                        static_cast<double>(good_) < kHopeless * steps_[best_].rate * seconds;
  if (ended_ < whole && !hopeless) return;
  const bool held = static_cast<double>(wanted_) >= kEnoughWanted * static_cast<double>(ended_);
  const double failed = static_cast<double>(ended_ - good_) / static_cast<double>(ended_);
  if (seconds < kRoundSeconds && failed <= kTooManyFailed) return;
  const double rate = seconds > 0 ? static_cast<double>(good_) / seconds : 0;
  beginRound(now);
  if (failed > kTooManyFailed || (held && seconds > 0)) measured(rate, failed);
}

bool AdaptiveLimit::doublesByTime(Time now, bool good, bool behind) {
  if (doubles_every_.count() == 0 || mode_ != Mode::Doubling) return false;
  if (!good) window_begin_ = Time::max();  // from now on by measurement alone
  if (window_begin_ == Time{}) window_begin_ = round_begin_;
  if (behind && window_begin_ != Time::max()) {  // few end because much waits: a window of that
                                                 // says nothing of the machines
    window_begin_ = now;
    window_ended_ = 0;
    return false;
  }
  ++window_ended_;
  if (window_begin_ > now || now - window_begin_ < doubles_every_) return false;
  window_begin_ = now;
  const bool few =
      static_cast<double>(std::exchange(window_ended_, 0)) < kFew * static_cast<double>(limit());
  const auto next = stepOf(2.0 * static_cast<double>(limit()));
  if (!few || next == at_) return false;
  best_ = next;
  move(next, Mode::Doubling);
  return true;
}

void AdaptiveLimit::learn(Step& step, double rate) const {
  step.rate = step.rate == 0 ? rate : step.rate + kFresh * (rate - step.rate);
}

void AdaptiveLimit::measured(double rate, double failed_share) {
  if (failed_share > kTooManyFailed) {  // whatever the rate: the other side suffers
    for (auto step = at_; step < steps_.size(); ++step) steps_[step].rate = 0;
    best_ = stepOf(static_cast<double>(limit()) / 2);
    return move(best_, Mode::Staying);
  }
  if (mode_ == Mode::Doubling) return doubled(rate);
  learn(steps_[at_], rate);
  compare();
}

void AdaptiveLimit::doubled(double rate) {
  const double before = at_ == best_ ? 0 : steps_[best_].rate;
  steps_[at_].rate = rate;
  if (rate < before * kDoublingGain) {
    if (rate > before * kClearGain) best_ = at_;
    return move(best_, Mode::Staying);
  }
  best_ = at_;
  const auto next = stepOf(2.0 * static_cast<double>(limit()));
  if (next == at_) return move(at_, Mode::Staying);
  move(next, Mode::Doubling);
}

void AdaptiveLimit::compare() {
  if (mode_ == Mode::Staying) {
    if (++stayed_ < kRoundsBetweenTries) return;
    stride_ = 1;
    return tryNext(std::exchange(up_next_, !up_next_));
  }
  const double here = steps_[at_].rate, best = steps_[best_].rate;
  const bool up = mode_ == Mode::TryingUp;
  if (here < best * (up ? kClearGain : kDraw)) return move(best_, Mode::Staying);
  best_ = at_;
  stride_ *= 2;  // further that way, and faster
  tryNext(up);
}

void AdaptiveLimit::tryNext(bool up) {
  const auto last = steps_.size() - 1;
  const auto next = up ? std::min(best_ + stride_, last) : best_ - std::min(best_, stride_);
  if (next == best_) return move(best_, Mode::Staying);
  steps_[next].rate = 0;  // what it brought before does not count against what it brings now
  move(next, up ? Mode::TryingUp : Mode::TryingDown);
}

void AdaptiveLimit::move(std::size_t step, Mode mode) {
  if (mode == Mode::Staying) stayed_ = 0;
  if (step != at_) settling_ = std::max(limit(), steps_[step].permits);
  at_ = step;
  mode_ = mode;
}

}  // namespace muster::lifecycle
