// SPDX-License-Identifier: Apache-2.0
// One action's installation: wave by wave until its component runs its baseline version. At most
// one flash of an image in an intent.
#pragma once

#include "bmc/bmc.h"
#include "firmware/baselines.h"
#include "firmware/files.h"
#include "firmware/progress.h"
#include "inventory/model/firmware.h"
#include "lifecycle/model/phase.h"

#include <functional>

namespace muster::firmware {

class Installation {
 public:
  /// What one process sees from begin to end: how long flashes take, since when an intent goes on,
  /// since when it meets an odd answer.
  struct Stopwatch {
    std::map<std::string, std::chrono::steady_clock::time_point> began;
    Durations took;
    std::string intent;
    std::chrono::steady_clock::time_point intent_began{};
    std::optional<std::chrono::steady_clock::time_point> odd_since;
    std::optional<std::chrono::steady_clock::time_point>
        starting_since;  ///< a task that has not begun
  };
  struct Services {
    bmc::Bmc& bmc;
    Clock& clock;
    FirmwareFiles& files;
    std::string image_url;  ///< see makeFirmwarePhase
    std::function<void(const std::string& component, std::string why)>
        remember;  ///< why it is not flashed again by itself
    Stopwatch& stopwatch;
  };
  /// Everything referred to outlives it.
  Installation(Services services, const inventory::FirmwareBaseline& baseline,
               const inventory::FirmwareComponent& component, const lifecycle::Action& action,
               lifecycle::ActContext& context, Progress progress)
      : bmc_(services.bmc),
        clock_(services.clock),
        files_(services.files),
        image_url_(std::move(services.image_url)),
        remember_(std::move(services.remember)),
        stopwatch_(services.stopwatch),
        baseline_(baseline),
        component_(component),
        action_(action),
        context_(context),
        progress_(std::move(progress)) {}

  /// One call of act: as far as it goes without waiting.
  Async<lifecycle::Outcome> go();
  /// Ends the intent; what is or may be on the machine is not flashed again by itself.
  Async<lifecycle::Outcome> abortWith(std::string why);

 private:
  using Outcome = lifecycle::Outcome;

  enum class Needs;
  struct StepRow;
  static const StepRow& stepRow(InstallStep step);
  Async<Outcome> step();
  Async<Outcome> waitForAnswer(std::string why);
  Async<Outcome> restoreStandby(std::string why);
  Async<Outcome> stabilizeBySight();
  Async<Outcome> stabilizeUnanswered(std::string why);
  bool mayBeOnTheMachine() const {
    return progress_.step != InstallStep::Look || !progress_.staged.empty();
  }
  bool isLate() const;
  Async<void> readInventory();
  bool runs(const Target& target) const;
  bool allStagedRun() const;
  bool isBeingWritten() const;
  std::string whatIsMissing() const;
  std::optional<Error> trouble() const;
  Target target() const;
  Result<inventory::FirmwareImageFile> imageOf(const Target& target) const;
  Activation activation() const;
  Async<void> record(InstallStep step);
  Async<void> record(InstallStep step, WallTime since);
  std::string node() const { return action_.facet.subject.str(); }

  /// What is said about a component that is given up.
  struct FailureReport {
    std::string text, evidence, what_to_do;
    bool written = true;  ///< its image may be on the machine
  };
  Async<Outcome> skipComponent(Target what, FailureReport report);
  Async<Outcome> failWave(FailureReport report);
  Async<Outcome> repeatFailure();
  void reportFinding(const FailureReport& report);

  Async<Outcome> nextUpload();
  /// What comes with an image, or why all of that cannot be sent.
  struct CoUpdated {
    std::vector<Target> others;
    std::string why_not;
  };
  Async<CoUpdated> coUpdatedWith(Target first, Schedule schedule);
  std::string whyNotWith(const Target& other, const Schedule& schedule,
                         const std::string& sha256) const;
  std::string whyNotCoUpdated(const Target& first, const std::vector<Target>& others) const;
  Async<Outcome> begin(Target next, Schedule schedule);
  void stageCurrent();
  Async<std::string> whyNot(Target target);
  Async<Outcome> look();
  Async<Outcome> upload();
  Async<std::optional<Outcome>> supplyMayGo();
  Async<Outcome> refused(Target what, Error error);
  Async<Outcome> notInstalled(Target what, std::string words);
  Async<Outcome> afterLostUpload();
  Async<Outcome> follow();
  Async<Outcome> lost();
  Async<Outcome> taken();
  Async<Outcome> activate();
  Async<Outcome> activateAgain();
  Async<Outcome> waitForCopies();
  Async<Outcome> powerOff();
  Async<Outcome> cutStandby();
  Async<Outcome> powerOn();
  Async<bool> isOff();
  Async<Outcome> allRun();
  Async<void> noteStarting();
  Async<Outcome> waitUntilStable();
  Async<Outcome> restartForAdapter(std::string name);
  bool owesRestart() const;
  Async<Outcome> takenUntilRestart();
  bool waitsForRestart(const bmc::TaskStatus& status);
  Async<std::string> workUnderWay();
  Async<std::string> whatIsWritten();
  Async<Outcome> beginStabilizing();
  Async<Outcome> stabilize(std::string seen);
  bool isDeclared(const Target& target) const;
  std::vector<Target> degradedComponents() const;
  Async<std::string> rollbackVersion(Target worse);
  Async<Outcome> rollBackComponent(Target worse, std::string seen);
  Async<Outcome> endWave();

  bmc::Bmc& bmc_;
  Clock& clock_;
  FirmwareFiles& files_;
  std::string image_url_;
  std::function<void(const std::string&, std::string)> remember_;
  Stopwatch& stopwatch_;
  const inventory::FirmwareBaseline& baseline_;
  const inventory::FirmwareComponent& component_;
  const lifecycle::Action& action_;
  lifecycle::ActContext& context_;
  Progress progress_;
  std::vector<bmc::FirmwareItem> items_;  ///< as last read
};

}  // namespace muster::firmware
