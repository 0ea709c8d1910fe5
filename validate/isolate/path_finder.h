// SPDX-License-Identifier: Apache-2.0
// Bad ways between good NICs: which cable, whose uplinks, or only these two. Internal.
#pragma once

#include "validate/isolate/state.h"

namespace muster::validate::isolate {

class PathFinder {
 public:
  explicit PathFinder(Isolation::State& state) : state_(state) {}

  /// By all that is known up to here.
  void find();

 private:
  void findPaths();
  void evaluatePaths();
  void accuseCommonNodes();
  void raiseCables();

  Isolation::State& state_;
};

}  // namespace muster::validate::isolate
