// SPDX-License-Identifier: Apache-2.0
// The words of runs, for rows, commands and the API. Internal to lifecycle/runs.
#pragma once

#include "inventory/model/rollout_policy.h"
#include "lifecycle/runs/run.h"
#include "wire/fields.h"

namespace muster::lifecycle {

inline constexpr wire::Words<RunKind, 9> kRunKinds{{{RunKind::Apply, "apply"},
                                                    {RunKind::Erase, "erase"},
                                                    {RunKind::Rollout, "rollout"},
                                                    {RunKind::Validate, "validate"},
                                                    {RunKind::Isolate, "isolate"},
                                                    {RunKind::FirmwareRetry, "firmware-retry"},
                                                    {RunKind::ImageBuild, "image-build"},
                                                    {RunKind::BmcPassword, "bmc-password"},
                                                    {RunKind::BmcCertificate, "bmc-certificate"}}};

inline constexpr wire::Words<RunState, 13> kRunStates{{{RunState::Queued, "queued"},
                                                       {RunState::Planning, "planning"},
                                                       {RunState::Planned, "planned"},
                                                       {RunState::NeedsApproval, "needs-approval"},
                                                       {RunState::Approved, "approved"},
                                                       {RunState::Waiting, "waiting"},
                                                       {RunState::Running, "running"},
                                                       {RunState::Paused, "paused"},
                                                       {RunState::Done, "done"},
                                                       {RunState::WorkLeft, "work-left"},
                                                       {RunState::Failed, "failed"},
                                                       {RunState::Cancelled, "cancelled"},
                                                       {RunState::Outdated, "outdated"}}};

inline constexpr wire::Words<RunReason, 22> kRunReasons{
    {{RunReason::None, "none"},
     {RunReason::AwaitsConfirmation, "awaits-confirmation"},
     {RunReason::AwaitsApproval, "awaits-approval"},
     {RunReason::NothingToDo, "nothing-to-do"},
     {RunReason::LimitsExceeded, "limits-exceeded"},
     {RunReason::ActionFailed, "action-failed"},
     {RunReason::Blocked, "blocked"},
     {RunReason::FaultsFound, "faults-found"},
     {RunReason::OthersWork, "others-work"},
     {RunReason::CannotPlan, "cannot-plan"},
     {RunReason::CancelledByPerson, "cancelled-by-person"},
     {RunReason::PausedByPerson, "paused-by-person"},
     {RunReason::PausedAfterRestart, "paused-after-restart"},
     {RunReason::FactsMoved, "facts-moved"},
     {RunReason::InventoryChanged, "inventory-changed"},
     {RunReason::OutsideWindow, "outside-window"},
     {RunReason::NoCommonWindow, "no-common-window"},
     {RunReason::RolloutHalted, "rollout-halted"},
     {RunReason::RolledBack, "rolled-back"},
     {RunReason::PlanGrew, "plan-grew"},
     {RunReason::ApprovalVoid, "approval-void"},
     {RunReason::Unreadable, "unreadable"}}};

inline constexpr wire::Words<RunOrder, 3> kRunOrders{
    {{RunOrder::None, "none"}, {RunOrder::Pause, "pause"}, {RunOrder::Cancel, "cancel"}}};

inline constexpr wire::Words<inventory::OnFailure, 2> kOnFailure{
    {{inventory::OnFailure::Halt, "halt"}, {inventory::OnFailure::RollBack, "roll-back"}}};

inline constexpr wire::Words<inventory::OnInconclusive, 2> kOnInconclusive{
    {{inventory::OnInconclusive::Halt, "halt"}, {inventory::OnInconclusive::Continue, "continue"}}};

inline constexpr wire::Words<AfterRestart, 2> kAfterRestart{
    {{AfterRestart::Continue, "continue"}, {AfterRestart::Pause, "pause"}}};

}  // namespace muster::lifecycle
