// SPDX-License-Identifier: Apache-2.0
// What a task's report means to the controller, beside its phase and its code. The controller
// decides by these and never by the report's text, which is for people.
//
// On the wire: "reasons", a list of words; left out where there is none. A word that the reader
// does not know is skipped. An agent that is older than this list sends text only, and then nothing
// is known: the installed system counts as written over (its key stays ended, so the node is imaged
// again), a failing disk, a replaced member or a missing permission is told as the agent's text
// alone, and a restart is not announced. docs/adr/0221
#pragma once

#include "base/result.h"

#include <string_view>

namespace muster::wire {

enum class TaskReason {
  DisksUntouched,    ///< failed or refused before the first byte: the installed system is what it
                     ///< was, and keeps its key
  SystemWipeDenied,  ///< only the permission to wipe the system disk is missing: `muster wipe`
  DataWipeDenied,    ///< the same for disks of storage sets: `muster wipe --data`
  MemberReplaced,    ///< the data of a refused set is whole, one of its disks is new
  DiskFailing,       ///< a disk cannot be read or written, or does not hold what was written
  Restarting  ///< of a task that runs: it has ordered a restart of the machine, and ends with
              ///< it
};
std::string_view toString(TaskReason reason);  ///< "disks-untouched"

/// The error of a task that refused, or failed, before the first byte on a disk.
inline std::unexpected<Error> untouched(Error why) {
  return fail(std::move(why).within("no disk was touched").because(TaskReason::DisksUntouched));
}

}  // namespace muster::wire
