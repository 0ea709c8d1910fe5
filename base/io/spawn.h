// SPDX-License-Identifier: Apache-2.0
// How base/io starts a child and takes in its end: shared by process.cc and dialogue.cc, of no use
// to others.
#pragma once

#include "base/io/process.h"

#include <optional>

namespace muster::io {

enum class Bond { DiesWithMuster, OutlivesMuster };

/// A write to a program that has ended must be an error, not the end of muster.
void ignoreBrokenPipes();
/// Starts the program with these descriptors as 0, 1 and 2.
Result<pid_t> spawn(const Command& command, Bond bond, int in, int out, int err);
/// Reaps this one child. nullopt: it still runs. A child that somebody else reaped counts as ended
/// with 255.
std::optional<int> reap(pid_t pid, int flags);

}  // namespace muster::io
