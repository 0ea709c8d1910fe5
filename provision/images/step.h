// SPDX-License-Identifier: Apache-2.0
// One step of a build, said when it begins and when it is done.
#pragma once

#include "provision/images/system_builder.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

namespace muster::provision {

class Step {
 public:
  Step(const Say& say, std::string what) : say_(say), what_(std::move(what)) { say_(what_ + " …"); }
  void done(const std::string& result = {}) const {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    say_(fmt::format("{}: {:.0f} s{}{}", what_, seconds, result.empty() ? "" : ", ", result));
  }

 private:
  const Say& say_;
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace muster::provision
