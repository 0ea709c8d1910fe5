// SPDX-License-Identifier: Apache-2.0
// What the parts of one installation share: the node's BMC, what is declared, how far the journal
// says that the wave has come, and the inventory as it was read last.
#pragma once

#include "bmc/bmc.h"
#include "firmware/baselines.h"
#include "firmware/files.h"
#include "firmware/progress.h"
#include "inventory/model/firmware.h"
#include "lifecycle/model/phase.h"

#include <functional>

namespace muster::firmware {

/// What one process sees from begin to end: how long flashes take, since when an intent goes on,
/// since when it meets an odd answer.
struct InstallStopwatch {
  std::map<std::string, std::chrono::steady_clock::time_point> began;
  Durations took;
  std::string intent;
  std::chrono::steady_clock::time_point intent_began{};
  std::optional<std::chrono::steady_clock::time_point> odd_since;
  std::optional<std::chrono::steady_clock::time_point>
      starting_since;  ///< a task that has not begun
  std::optional<std::chrono::steady_clock::time_point>
      switched_on;  ///< the host, so that its baseboard can be read
};

struct InstallServices {
  bmc::Bmc& bmc;
  Clock& clock;
  FirmwareFiles& files;
  std::string image_url;  ///< see makeFirmwarePhase
  std::function<void(const std::string& component, std::string why)>
      remember;  ///< why it is not flashed again by itself
  InstallStopwatch& stopwatch;
};

/// What is done next at once, without another read of the inventory.
enum class Continuation {
  ChooseUpload,     ///< NextUpload::choose
  Upload,           ///< ImageUpload::start
  FindUpload,       ///< ImageUpload::findLost
  FollowTask,       ///< UpdateTask::follow
  AwaitUnseen,      ///< UpdateTask::awaitUnseen
  Activate,         ///< ActivationSequence::activate
  ActivateAgain,    ///< ActivationSequence::activateAgain
  AwaitCopies,      ///< ActivationSequence::awaitCopies
  PowerOff,         ///< ActivationSequence::powerOff
  CutStandby,       ///< ActivationSequence::cutStandby
  PowerOn,          ///< ActivationSequence::powerOn
  AllRun,           ///< ActivationSequence::allRun
  AwaitVersions,    ///< Stabilization::awaitVersions
  WaitUntilStable,  ///< Stabilization::waitUntilStable
  RepeatFailure     ///< WaveFailure::repeat
};
using StepResult = std::variant<lifecycle::Outcome, Continuation>;

class RunningWave {
 public:
  /// Everything referred to outlives it.
  RunningWave(InstallServices services, const inventory::FirmwareBaseline& baseline,
              const inventory::FirmwareComponent& component, const lifecycle::Action& action,
              lifecycle::ActContext& context, Progress progress)
      : services_(std::move(services)),
        baseline_(baseline),
        component_(component),
        action_(action),
        context_(context),
        progress_(std::move(progress)) {}

  bmc::Bmc& bmc() const { return services_.bmc; }
  Clock& clock() const { return services_.clock; }
  FirmwareFiles& files() const { return services_.files; }
  const std::string& imageUrl() const { return services_.image_url; }
  InstallStopwatch& stopwatch() const { return services_.stopwatch; }
  void remember(const std::string& component, std::string why) const {
    services_.remember(component, std::move(why));
  }
  const inventory::FirmwareBaseline& baseline() const { return baseline_; }
  /// Of the action, whichever is installed at this moment.
  const inventory::FirmwareComponent& component() const { return component_; }
  const lifecycle::Action& action() const { return action_; }
  const lifecycle::Subject& subject() const { return action_.facet.subject; }
  std::string node() const { return subject().str(); }
  lifecycle::ActContext& context() const { return context_; }
  Progress& progress() { return progress_; }
  const Progress& progress() const { return progress_; }

  // ---- the inventory

  /// Errors: of the BMC
  Async<void> readInventory();
  /// As last read; null: it is not listed.
  const bmc::FirmwareItem* find(std::string_view component) const;
  const std::vector<bmc::FirmwareItem>& items() const { return items_; }
  /// Of everything that can be read, and what drivers' probes show.
  Versions versions() const;
  bool runs(const Target& target) const;
  /// The action's own component has the version that the action wants.
  bool hasArrived() const { return runs({component_.name, action_.to}); }
  bool allStagedRun() const;
  bool isBeingWritten() const;
  std::string whatIsMissing() const;
  /// Why the action's component cannot be seen. Error: Unavailable (unreadable), NotFound
  std::optional<Error> trouble() const;
  /// What the BMC works on and what the inventory shows: what must be over before anything is
  /// switched. "": nothing.
  Async<std::string> whatIsWritten();

  // ---- what is declared

  Target own() const { return {component_.name, component_.version}; }
  /// What is uploaded or written now, or would be.
  Target target() const { return progress_.current.empty() ? own() : progress_.current; }
  /// Errors: InvalidInput (the baseline does not declare it any more)
  Result<inventory::FirmwareImageFile> imageOf(const Target& target) const;
  bool isDeclared(const Target& target) const { return imageOf(target).has_value(); }
  /// For people; `otherwise` where nothing is staged.
  std::string stagedNames(const std::string& otherwise) const;
  /// The strongest that what is staged needs.
  Activation activation() const;

  // ---- the journal

  Async<void> record(InstallStep step);
  Async<void> record(InstallStep step, WallTime since);
  /// The current image, and what came with it, may be on the machine.
  void stageCurrent();
  void dropCurrent();
  /// Something of this intent is on the machine, or may be.
  bool mayBeOnTheMachine() const {
    return progress_.step != InstallStep::Look || !progress_.staged.empty();
  }

 private:
  Async<std::string> workUnderWay();

  InstallServices services_;
  const inventory::FirmwareBaseline& baseline_;
  const inventory::FirmwareComponent& component_;
  const lifecycle::Action& action_;
  lifecycle::ActContext& context_;
  Progress progress_;
  std::vector<bmc::FirmwareItem> items_;
};

inline std::string nameOf(const Target& target) { return target.component + " " + target.version; }

}  // namespace muster::firmware
