// SPDX-License-Identifier: Apache-2.0
// What the journal keeps of RAID work: one order at a time, written down before it is sent.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

struct RaidNote {
  enum class Restart { None, Due, Off, On };  ///< Off: power may be off; On: it may be on again

  std::string volume;               ///< the declared one that is worked for
  std::string deletes;              ///< URI of the volume that goes; "": the declared one is made
  bool answered = false;            ///< else the order may have been sent, or not
  std::string task;                 ///< its URI; "": none is known
  std::vector<std::string> before;  ///< tasks that there were before
  Restart restart = Restart::None;
  std::string since;          ///< when it was ordered, or the machine was started for it
  bool data_allowed = false;  ///< the permission for data was used by this intent

  std::string str() const;
  /// Nothing: no order was ever begun. Errors: Corrupt
  static Result<std::optional<RaidNote>> parse(const std::string& operation);
};

}  // namespace muster::provision
