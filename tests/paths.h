// SPDX-License-Identifier: Apache-2.0
// Where this build lives. Compiled into one file only, so that every other object is the same in
// every checkout (compiler cache).
#pragma once

#include <filesystem>

namespace muster::test {

std::filesystem::path sourceFolder();
/// Where the built programs lie.
std::filesystem::path binFolder();

}  // namespace muster::test
