// SPDX-License-Identifier: Apache-2.0
// Sweeps over the moments at which muster can die, or its store be in trouble. What is swept is a
// Trial: a world in memory, what one process of muster does in it, and what must be true at the
// end. CI takes a sample (tests/sweep.h); with MUSTER_CRASH_ALL=1 (`ctest -R crash_long`) every
// point both ways, and many more pairs. Every failure names its point.
#pragma once

#include "tests/crash/simulated_rack.h"

namespace muster::test {

class Trial {
 public:
  virtual ~Trial() = default;
  /// One process of muster: begins, or goes on, or finds that nothing is left to do.
  virtual LifeEnd live(Death death) = 0;
  /// After the life that was not disturbed.
  virtual void expectTheEnd() = 0;
  /// What muster has told of it, for a failure's message.
  virtual std::string story() = 0;
};
using MakeTrial = std::function<std::unique_ptr<Trial>()>;

template <class T>
MakeTrial trials() {
  return [] { return std::make_unique<T>(); };
}

inline const Death kReadOnlyForMinutes{
    .trouble_lasts = std::chrono::minutes(7),
    .trouble = {Error(ErrorCode::Unavailable, "the store is read-only").retryable(false), false,
                false}};

std::string storyOf(lifecycle::Store& store);

struct Sample {
  int every = 1;      ///< of the points: what a sample is a share of
  bool both = false;  ///< each write lost and kept, not in turn
  int pairs = 20;
  unsigned seed = 1;
};

/// Writes of an undisturbed life, which must reach the end.
int writesOf(const MakeTrial& make);
/// kill -9 at the writes of the first life, each lost or kept in turn; the second life must reach
/// the end.
void killAtEveryWrite(const MakeTrial& make, int at_least, Sample sample = {});
/// kill -9 in the first life and again in the second, at pairs of points drawn by the seed.
void killTwice(const MakeTrial& make, Sample sample = {});
/// From each write on the store is in this trouble for a while. Muster must say so if it gives up,
/// and reach the end when it is over.
void troubleAtEveryWrite(const MakeTrial& make, Death trouble, Sample sample = {});

}  // namespace muster::test
