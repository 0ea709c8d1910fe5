// How far an update has come: journaled as the intent's operation before and after every outside effect, so that a new
// process knows what may have happened and looks there first.
//
//   upload 1 - /redfish/v1/…/Tasks/1 …          an upload may be under way; these tasks were there before it
//   upload 1 2026-11-20T14:03:11.000Z …         its answer is lost, and since then no list showed a task of it
//   task /redfish/v1/TaskService/Tasks/4        the BMC accepted the upload
//   activate 2026-11-20T14:03:11.000Z           the upload is over; a reset of the BMC may have been done
//   activate off 2026-11-20T14:03:11.000Z       the power may have been switched off; nothing has switched it on
//   activate on 2026-11-20T14:03:11.000Z        the power may be on again, and a flash running in POST: never cut it now
//   settle 2026-11-20T14:03:11.000Z             the activation was done; the new version must show until kSettleLimit after this
#pragma once

#include "base/clock.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::firmware {

enum class Step { Look, Upload, Follow, Activate, PowerOff, PowerOn, Settle };

struct Progress {
  Step step = Step::Look;
  int uploads_tried = 0;                   ///< Upload
  std::vector<std::string> tasks_before;   ///< Upload
  std::string task;                        ///< Follow
  WallTime since{};                        ///< Upload: of the first look after a lost answer, else zero. Others: of the step

  std::string str() const;
  /// "" is Look. Errors: Corrupt
  static Result<Progress> parse(const std::string& text);
};

}  // namespace muster::firmware
