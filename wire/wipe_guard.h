// SPDX-License-Identifier: Apache-2.0
// Words of the agent that the controller acts on.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace muster::wire {

/// Only a permission is missing. The controller advises `muster wipe` for this refusal and for no
/// other.
inline constexpr std::string_view kWipeGuard =
    "it is not overwritten, because the plan did not say that this node may be wiped";
/// The same for disks beside the system disk; the advice is `muster wipe --data`.
inline constexpr std::string_view kDataGuard =
    "they are not overwritten, because a permission to wipe the system disk does not cover data";
/// The data of a refused set is whole, one of its disks is new. The advice is how to keep it.
inline constexpr std::string_view kReplacedMember = "a member of it was replaced";
/// How the error of a task begins that was to write or erase disks and refused, or failed, before
/// the first byte. Nothing but the agent's own words comes before it. The installed system is what
/// it was, and keeps its key.
inline constexpr std::string_view kUntouched = "no disk was touched";
inline std::unexpected<Error> untouched(Error why) {
  return fail(std::move(why).within(std::string(kUntouched)));
}
/// A disk cannot be read or written, or does not hold what was written: the disk itself is named
/// before.
inline constexpr std::string_view kReplaceDisk = "replace the disk";
/// Content of a disk whose installed system is whole.
inline constexpr std::string_view kInstalledByMuster = "a system installed by muster";

}  // namespace muster::wire
