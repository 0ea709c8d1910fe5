// SPDX-License-Identifier: Apache-2.0
// How far an update has come: journaled as the intent's operation before and after every outside
// effect, so that a new process knows what may have happened and looks there first.
//
//   upload 1 - /redfish/v1/…/Tasks/1 …          an upload may be under way; these tasks were there
//   before it upload 1 2026-11-20T14:03:11.000Z …         its answer is lost, and since then no
//   list showed a task of it task /redfish/v1/TaskService/Tasks/4 2026-… the BMC accepted the
//   upload then lost 2026-11-20T14:03:11.000Z               nobody knows the task of an upload that
//   was accepted then: it may still be written next                                        the BMC
//   has taken in what stands before; the next upload may begin activate 2026-11-20T14:03:11.000Z
//   the uploads are over; a reset of the BMC may have been done activate copy
//   2026-11-20T14:03:11.000Z      nothing is switched before the BMC has filled its second slots
//   activate off 2026-11-20T14:03:11.000Z       the power may have been switched off; nothing has
//   switched it on activate ac 2026-11-20T14:03:11.000Z        standby power may have been cut
//   activate on 2026-11-20T14:03:11.000Z        the power may be on again, and a flash running in
//   POST: never cut it now settle 2026-11-20T14:03:11.000Z             the activation was done; the
//   new versions must show until kStabilizeLimit after this
//
//   rollback 2026-11-20T14:03:11.000Z           the last of what stands before was left worse; its
//   previous image may have been ordered over                                        it has failed
//   for good; said again to whoever asks, nothing more is done
//
// In front of that stands "waits:/redfish/v1/…/Tasks/5" for a task that begins only at the restart,
// "restarted:NIC.Slot.5" once the host was restarted for an adapter that did not come up,
// "starting:NIC.Slot.3" for an adapter that was not ready before anything was switched ("starting:"
// alone: all were), and what this intent has uploaded besides and the BMC has taken in,
// "+BIOS=1.4.2", and, while it is not the action's own component, whose upload or task it is,
// "for:CPLD=0x14", and what the same package is written into besides, "with:FPGA=3.1". Blanks in
// names and URIs are written %20. When a component was given up, "failed:NIC=22.5 because:WORDS"
// (or "refused:", where nothing of it was written): what stands before it is still switched on.
#pragma once

#include "base/clock.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::firmware {

enum class InstallStep {
  Look,
  Upload,
  Follow,
  Lost,
  Next,
  Activate,
  Copy,
  PowerOff,
  AcCut,
  PowerOn,
  Stabilize,
  RollBack,
  Over
};

/// A component and the version that it is to run.
struct Target {
  std::string component, version;
  bool empty() const { return component.empty(); }
  friend bool operator==(const Target&, const Target&) = default;
};

/// Why a wave ends badly, whatever becomes of its other components.
struct Failure {
  Target target;
  std::string why;
  bool written =
      true;  ///< the image may be on the machine: it is not sent again before a person has looked
};

struct Progress {
  InstallStep step = InstallStep::Look;
  std::vector<Target> staged = {};  ///< taken in by the BMC, and not seen to run yet
  Target current = {};  ///< Upload, Follow, Lost: of whom; empty: of the action's own component
  std::vector<Target> with = {};               ///< … and of whom besides
  int uploads_tried = 0;                       ///< Upload
  std::vector<std::string> tasks_before = {};  ///< Upload
  std::string task = {};                       ///< Follow
  std::optional<Failure> failed = {};
  std::vector<std::string> waits = {};  ///< tasks that begin only when the host restarts
  std::string restarted = {};  ///< the adapter for whose sake the host was restarted once more in
                               ///< this wave; "" when it was not
  std::optional<std::set<std::string>> starting =
      {};  ///< adapters that were not ready before this wave switched anything; unset: nobody knows
  WallTime since{};  ///< Upload: of the first look after a lost answer, else zero. Follow, Lost: of
                     ///< the upload. Others: of the step

  /// The current component has its image under way.
  bool isWriting() const {
    return step == InstallStep::Upload || step == InstallStep::Follow || step == InstallStep::Lost;
  }
  std::string str() const;
  /// "" is Look. Errors: Corrupt
  static Result<Progress> parse(const std::string& text);
};

}  // namespace muster::firmware
