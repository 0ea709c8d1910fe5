// The firmware phase: one component at a time, in the baseline's order, at most one flash in an intent.
#include "base/deadline.h"
#include "base/poll.h"
#include "bmc/arbiter.h"
#include "firmware/activation.h"
#include "firmware/files.h"
#include "firmware/firmware.h"
#include "firmware/progress.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Action;
using lifecycle::ActContext;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Fact;
using lifecycle::FacetRef;
using lifecycle::Goal;
using lifecycle::Outcome;
using lifecycle::Subject;

namespace {

constexpr std::string_view kPrefix = "firmware.";
constexpr auto kExpected = 240s;
constexpr auto kDeadline = 60min;
constexpr auto kObserveLimit = 5min;
constexpr auto kFirstLook = 300ms;
constexpr auto kTaskPoll = 2s;
constexpr auto kBusyPoll = 10s;
constexpr auto kSettlePoll = 5s;
constexpr auto kSettleLimit = 15min;   ///< a host shows its new BIOS only after POST
constexpr auto kShutdownLimit = 90s;   ///< for the guest; then the power is cut
constexpr auto kResetGrace = 10min;    ///< a BMC that may have been reset is left alone so long before it is reset again
constexpr int kMaxUploadsTried = 3;    ///< attempts of which none is known to have arrived
constexpr auto kUploadGrace = 2min;    ///< for a slow BMC to list an upload whose answer was lost; looked at every kBusyPoll

FacetName facetOf(const std::string& component) { return FacetName(std::string(kPrefix) + component); }

/// The baseline's components in the order in which they are brought up.
std::vector<const inventory::FirmwareComponent*> inOrder(const inventory::FirmwareBaseline& baseline) {
  std::vector<const inventory::FirmwareComponent*> ordered;
  auto add = [&](const inventory::FirmwareComponent& c) {
    if (std::find(ordered.begin(), ordered.end(), &c) == ordered.end()) ordered.push_back(&c);
  };
  for (const auto& name : baseline.order) {
    for (const auto& c : baseline.components) {
      if (c.name == name) add(c);
    }
  }
  for (const auto& c : baseline.components) add(c);
  return ordered;
}

const inventory::FirmwareBaseline* baselineOf(const inventory::Cluster& cluster, const Subject& subject) {
  if (subject.isCluster()) return nullptr;
  const inventory::Node* node = cluster.findNode(subject.node());
  if (!node) return nullptr;
  auto it = cluster.firmware.find(cluster.profileOf(*node).firmware);
  return it == cluster.firmware.end() ? nullptr : &it->second;
}

class FirmwarePhase final : public lifecycle::Phase {
 public:
  FirmwarePhase(const inventory::Cluster& cluster, bmc::BmcFleet& bmcs, Clock& clock, Workers& workers)
      : cluster_(cluster), bmcs_(bmcs), clock_(clock), files_(workers) {}

  std::string_view name() const override { return "firmware"; }

  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject, const lifecycle::FactSet& facts) const override {
    std::vector<Goal> goals;
    const auto* baseline = baselineOf(cluster, subject);
    if (!baseline) return goals;
    FacetRef before{subject, FacetName("enrolled")};
    for (const auto* component : inOrder(*baseline)) {
      Goal goal;
      goal.facet = {subject, facetOf(component->name)};
      goal.want = component->version;
      goal.disruption = component->file.empty() ? lifecycle::Disruption::None : lifecycle::Disruption::Reset;
      goal.blocked = whyNotFlashable(*baseline, *component, subject, facts);
      goal.expected = kExpected;
      goal.deadline = kDeadline;
      goal.needs.push_back(before);
      if (before.facet != FacetName("enrolled")) goal.needs.push_back({subject, FacetName("enrolled")});
      goal.why = fmt::format("baseline {} has {} {}", baseline->name, component->name, component->version);
      before = goal.facet;
      goals.push_back(std::move(goal));
    }
    return goals;
  }

  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> facts;
    const auto* baseline = baselineOf(cluster_, subject);
    if (!baseline) co_return facts;
    bmc::Bmc& bmc = bmcs_.at(subject.node());
    auto inventory = bmc.firmware();
    auto read = withDeadline<std::vector<bmc::FirmwareItem>>(clock_, kObserveLimit, "the firmware inventory of " + subject.str(), std::move(inventory));
    auto seen = co_await std::move(read);
    if (!seen) co_return fail(std::move(seen.error()).within("firmware of " + subject.str()));
    for (const auto& component : baseline->components) {
      for (const auto& item : *seen) {
        if (item.name != component.name || item.version.empty()) continue;
        facts.push_back(Fact{subject, facetOf(component.name), item.version, clock_.now(), "redfish " + bmc.address(), {}});
      }
    }
    for (const auto& component : baseline->components) {
      if (component.file.empty()) continue;
      auto look = files_.state(component);
      CO_TRY(state, co_await std::move(look));
      facts.push_back(Fact{subject, fileFacet(component.name), state, clock_.now(), "file " + component.file.string(), {}});
    }
    co_return facts;
  }

  Async<Outcome> act(Action action, ActContext& context) override;

  Async<std::vector<Fact>> verify(Action action) override { return observe(action.facet.subject); }

 private:
  /// One call of act. Passed by value; everything it points to outlives the call.
  struct Job {
    const Action* action;
    ActContext* context;
    bmc::Bmc* bmc;
    const inventory::FirmwareComponent* component;
    Progress progress;
  };

  /// What the inventory shows of the component; or why it shows nothing, although the BMC answers.
  struct Shown {
    std::string version;
    std::optional<Error> trouble;
    bool is(const std::string& wanted) const { return !trouble && lifecycle::matches(wanted, version); }
    std::string words() const { return trouble ? trouble->str() : "shows " + version; }
  };

  Async<Shown> shown(Job job);
  Async<void> record(Job job, Progress progress);
  Error givenUp(const Job& job, std::string text, std::string evidence, std::string what_to_do);

  static Result<Outcome> patient(Result<Outcome> outcome, bool begun);
  Async<std::string> whyNotNow(Job job);
  Async<Outcome> look(Job job);
  Async<Outcome> upload(Job job);
  Async<Outcome> afterLostUpload(Job job);
  Async<Outcome> follow(Job job);
  Async<Outcome> activate(Job job);
  Async<Outcome> activateAgain(Job job);
  Async<Outcome> powerOff(Job job);
  Async<Outcome> powerOn(Job job);
  Async<Outcome> beginSettling(Job job);
  Result<Outcome> settle(const Job& job, const std::string& seen);

  const inventory::Cluster& cluster_;
  bmc::BmcFleet& bmcs_;
  Clock& clock_;
  FirmwareFiles files_;
};

Async<Outcome> FirmwarePhase::act(Action action, ActContext& context) {
  const Subject subject = action.facet.subject;
  const std::string name = action.facet.facet.str().substr(kPrefix.size());
  const inventory::FirmwareComponent* component = nullptr;
  if (const auto* baseline = baselineOf(cluster_, subject)) {
    for (const auto& c : baseline->components) {
      if (c.name == name && c.version == action.to) component = &c;
    }
  }
  if (!component) {
    co_return fail(ErrorCode::InvalidInput, fmt::format("the inventory does not declare {} {} for {} any more; plan again", name, action.to, subject.str()));
  }
  CO_TRY(progress, Progress::parse(context.operation()));
  Job job{&action, &context, &bmcs_.at(subject.node()), component, progress};
  if (progress.step == Step::Follow) {
    auto following = follow(job);
    auto outcome = co_await std::move(following);
    co_return patient(std::move(outcome), true);
  }

  // The inventory decides, whatever the journal or a task says.
  auto read = shown(job);
  auto seen = co_await std::move(read);
  const bool begun = progress.step != Step::Look;
  if (!seen && seen.error().canRetry() && begun) {  // it installs, restarts, or was restarting when muster died
    if (progress.step == Step::Settle) co_return settle(job, "no answer: " + seen.error().str());
    co_return Again{kSettlePoll, "the BMC does not answer: " + seen.error().str()};
  }
  if (!seen) co_return fail(std::move(seen.error()));
  if (seen->is(action.to)) co_return Done{};
  // Once begun, what is not shown is no verdict: components vanish while they install, or while the host is off.
  if (seen->trouble && !begun) co_return fail(std::move(*seen->trouble));
  if (progress.step == Step::Settle) co_return settle(job, seen->words());

  auto step = progress.step == Step::Look       ? look(job)
              : progress.step == Step::Upload   ? afterLostUpload(job)
              : progress.step == Step::Activate ? activateAgain(job)
              : progress.step == Step::PowerOff ? powerOff(job)
                                                : powerOn(job);
  auto outcome = co_await std::move(step);
  co_return patient(std::move(outcome), begun);
}

/// A failed intent would be followed by a new flash. The action's deadline bounds this.
Result<Outcome> FirmwarePhase::patient(Result<Outcome> outcome, bool begun) {
  if (!outcome && outcome.error().canRetry() && begun) return Again{kBusyPoll, outcome.error().str()};
  return outcome;
}

Async<FirmwarePhase::Shown> FirmwarePhase::shown(Job job) {
  auto read = job.bmc->firmware();
  CO_TRY(items, co_await std::move(read));
  const auto& name = job.component->name;
  const bmc::FirmwareItem* unread = nullptr;  // of vendors that name members inside, an unreadable one may be any
  for (const auto& item : items) {
    if (!item.unreadable.empty() && (!unread || item.name == name)) unread = &item;
    if (item.name == name && item.unreadable.empty()) co_return Shown{item.version, std::nullopt};
  }
  if (unread) {
    co_return Shown{{}, Error(ErrorCode::Unavailable, fmt::format("{} lists {} but cannot read it now: {}{}", job.bmc->address(), unread->name, unread->unreadable,
                                                                  unread->name == name ? "" : "; " + name + " is not listed, or it is that one"))};
  }
  co_return Shown{{}, Error(ErrorCode::NotFound, fmt::format("{} lists no firmware component {}; correct its name in the baseline", job.bmc->address(), name))};
}

Async<void> FirmwarePhase::record(Job job, Progress progress) {
  auto write = job.context->recordOperation(progress.str());
  co_return co_await std::move(write);
}

Error FirmwarePhase::givenUp(const Job& job, std::string text, std::string evidence, std::string what_to_do) {
  job.context->finding({job.action->facet, Severity::Error, text, std::move(evidence), what_to_do, clock_.now()});
  return Error(ErrorCode::Conflict, text + ". " + what_to_do);
}

/// The plan has asked this already; since then the file may have changed.
Async<std::string> FirmwarePhase::whyNotNow(Job job) {
  const auto& subject = job.action->facet.subject;
  const auto* baseline = baselineOf(cluster_, subject);
  if (baseline && job.component->file.empty()) co_return whyNotFlashable(*baseline, *job.component, subject, {});
  auto read = files_.state(*job.component);
  CO_TRY(state, co_await std::move(read));
  co_return whyNotFlashable(*job.component, state);
}

Async<Outcome> FirmwarePhase::look(Job job) {
  auto check = whyNotNow(job);
  CO_TRY(why_not, co_await std::move(check));
  if (!why_not.empty()) co_return Blocked{why_not};
  auto list = job.bmc->tasks();
  CO_TRY(tasks, co_await std::move(list));
  if (!tasks.running.empty()) co_return Again{kBusyPoll, "the BMC is busy with " + tasks.running.front()};
  job.progress.tasks_before = tasks.finished;
  auto next = upload(job);
  co_return co_await std::move(next);
}

// The journal knows of the upload before the BMC does. Whatever happens to the answer, the next call looks first.
Async<Outcome> FirmwarePhase::upload(Job job) {
  const auto& component = *job.component;
  Progress next = job.progress;
  next.step = Step::Upload;
  next.since = WallTime{};
  ++next.uploads_tried;
  auto written = record(job, next);
  CO_TRY_OK(co_await std::move(written));
  job.context->progress(0, fmt::format("uploading {} {}", component.name, component.version));
  auto send = job.bmc->startUpdate(bmc::FirmwareUpdate{component.name, component.file, component.sha256});
  auto task = co_await std::move(send);
  if (task) {
    next.step = Step::Follow;
    next.task = *task;
    auto written = record(job, next);
    CO_TRY_OK(co_await std::move(written));
    co_return Again{kFirstLook, fmt::format("{} {} is being installed", component.name, component.version)};
  }
  const Error& error = task.error();
  if (error.code() == ErrorCode::Conflict) {  // refused as a whole; but what is in its way may be an earlier one of ours
    if (job.progress.uploads_tried == 0) {
      auto forgotten = record(job, Progress());
      CO_TRY_OK(co_await std::move(forgotten));
    }
    co_return Again{kBusyPoll, error.str()};
  }
  if (error.canRetry()) co_return Again{kBusyPoll, "the answer to the upload was lost: " + error.str()};
  if (error.code() == ErrorCode::Corrupt) {
    job.context->finding({job.action->facet, Severity::Error, fmt::format("the firmware file of {} {} is not what the baseline declares", component.name, component.version),
                          error.str(), "fetch the file again, or correct file and sha256 in the baseline", clock_.now()});
  }
  co_return fail(std::move(task.error()));
}

Async<Outcome> FirmwarePhase::afterLostUpload(Job job) {
  auto list = job.bmc->tasks();
  CO_TRY(tasks, co_await std::move(list));
  auto isNew = [&](const std::string& uri) {
    const auto& before = job.progress.tasks_before;
    return std::find(before.begin(), before.end(), uri) == before.end();
  };
  std::string ours;
  for (const auto& uri : tasks.finished) {
    if (isNew(uri)) ours = uri;
  }
  for (const auto& uri : tasks.running) {
    if (isNew(uri)) ours = uri;
  }
  if (!ours.empty()) {
    job.progress.step = Step::Follow;
    job.progress.task = ours;
    auto written = record(job, job.progress);
    CO_TRY_OK(co_await std::move(written));
    auto next = follow(job);
    co_return co_await std::move(next);
  }
  if (job.progress.since == WallTime{}) {
    job.progress.since = clock_.now();
    auto written = record(job, job.progress);
    CO_TRY_OK(co_await std::move(written));
  }
  if (clock_.now() < job.progress.since + kUploadGrace) {  // the BMC may still be taking it in
    co_return Again{kBusyPoll, fmt::format("the BMC to list the upload of {} {}, whose answer was lost", job.component->name, job.component->version)};
  }
  if (!tasks.keeps_finished) {  // it may have come and gone: only the activation can tell
    auto next = activate(job);
    co_return co_await std::move(next);
  }
  if (job.progress.uploads_tried >= kMaxUploadsTried) {
    co_return fail(givenUp(job, fmt::format("{} uploads of {} to {} were cut off", job.progress.uploads_tried, job.component->name, job.bmc->address()),
                           "the BMC lists no task of them", "check the network to the BMC, then apply again"));
  }
  auto next = upload(job);
  co_return co_await std::move(next);
}

// While the task runs nothing else is asked; once it has ended, the inventory decides.
Async<Outcome> FirmwarePhase::follow(Job job) {
  const auto& component = *job.component;
  auto read = job.bmc->task(job.progress.task);
  auto status = co_await std::move(read);
  if (!status && status.error().canRetry()) co_return Again{kSettlePoll, "the BMC does not answer: " + status.error().str()};
  if (!status && status.error().code() != ErrorCode::NotFound) co_return fail(std::move(status.error()));
  if (status && status->state == bmc::TaskState::Running) {
    job.context->progress(status->fraction, status->message);
    co_return Again{kTaskPoll, fmt::format("installing {} {}: {}", component.name, component.version, status->message)};
  }
  auto look_again = shown(job);
  auto now = co_await std::move(look_again);
  if (!now && now.error().canRetry()) co_return Again{kSettlePoll, "the BMC does not answer: " + now.error().str()};
  if (!now) co_return fail(std::move(now.error()));
  if (now->is(job.action->to)) co_return Done{};  // some BMCs activate by themselves, some report a failure of what worked
  if (status && status->state == bmc::TaskState::Failed) {
    co_return fail(givenUp(job, fmt::format("{} did not install {} {}", job.bmc->address(), component.name, component.version), status->message,
                           "read the BMC's own log; the old version is still active. muster does not flash it again by itself"));
  }
  // Completed, or forgotten by the BMC: neither says that it is installed.
  auto next = activate(job);
  co_return co_await std::move(next);
}

Async<Outcome> FirmwarePhase::activate(Job job) {
  const auto how = activationOf(job.component->name);
  job.progress.step = Step::Activate;
  job.progress.since = clock_.now();
  auto written = record(job, job.progress);
  CO_TRY_OK(co_await std::move(written));
  job.context->progress(1, fmt::format("activating {} {} ({})", job.component->name, job.component->version, toString(how)));
  if (how == Activation::PowerCycle) {
    auto off = powerOff(job);
    co_return co_await std::move(off);
  }
  if (how == Activation::BmcReset) {
    auto reset = job.bmc->resetBmc();
    CO_TRY_OK(co_await std::move(reset));
  }
  auto settling = beginSettling(job);
  co_return co_await std::move(settling);
}

// The reset may have been received before muster died, and the BMC may install what was uploaded right now.
Async<Outcome> FirmwarePhase::activateAgain(Job job) {
  const bool may_install = activationOf(job.component->name) == Activation::BmcReset && clock_.now() < job.progress.since + kResetGrace;
  if (may_install) co_return Again{kSettlePoll, fmt::format("the BMC may have been reset already; waiting for {} {}", job.component->name, job.component->version)};
  auto next = activate(job);
  co_return co_await std::move(next);
}

// The guest is asked first; a node that is off is only switched on.
Async<Outcome> FirmwarePhase::powerOff(Job job) {
  auto read = job.bmc->system();
  CO_TRY(system, co_await std::move(read));
  if (system.power != bmc::PowerState::Off) {
    job.progress.step = Step::PowerOff;
    auto written = record(job, job.progress);
    CO_TRY_OK(co_await std::move(written));
    auto ask = job.bmc->power(bmc::PowerAction::GracefulShutdown);
    auto bounded = withDeadline<void>(clock_, kShutdownLimit, "shutting down", std::move(ask));
    auto down = co_await std::move(bounded);
    if (!down) {
      auto force = job.bmc->power(bmc::PowerAction::ForceOff);
      CO_TRY_OK(co_await std::move(force));
    }
  }
  job.progress.step = Step::PowerOn;
  job.progress.since = clock_.now();
  auto written = record(job, job.progress);
  CO_TRY_OK(co_await std::move(written));
  auto on = powerOn(job);
  co_return co_await std::move(on);
}

// From here on power is only ever switched on: what was uploaded may be flashed in POST.
Async<Outcome> FirmwarePhase::powerOn(Job job) {
  auto read = job.bmc->system();
  CO_TRY(system, co_await std::move(read));
  if (system.power == bmc::PowerState::Off) {
    auto on = job.bmc->power(bmc::PowerAction::On);
    CO_TRY_OK(co_await std::move(on));
  } else if (system.power == bmc::PowerState::Unknown && clock_.now() < job.progress.since + kSettleLimit) {
    co_return Again{kSettlePoll, "its power to be on"};
  }
  auto settling = beginSettling(job);
  co_return co_await std::move(settling);
}

Async<Outcome> FirmwarePhase::beginSettling(Job job) {
  job.progress.step = Step::Settle;
  job.progress.since = clock_.now();
  auto write = record(job, job.progress);
  CO_TRY_OK(co_await std::move(write));
  co_return Again{kFirstLook, fmt::format("waiting for {} {} to be active", job.component->name, job.component->version)};
}

Result<Outcome> FirmwarePhase::settle(const Job& job, const std::string& seen) {
  const auto& component = *job.component;
  if (clock_.now() < job.progress.since + kSettleLimit) {
    const auto waited = clock_.now() - job.progress.since;
    return Again{lookAgainAfter(waited, kFirstLook, kSettlePoll), fmt::format("{} to be {}: {}", component.name, component.version, seen)};
  }
  return fail(givenUp(job, fmt::format("{} is not {}, {} min after its activation: {}", component.name, component.version, kSettleLimit.count(), seen),
                      fmt::format("activation {}; the upload was reported as completed", toString(activationOf(component.name))),
                      "check by hand what this component needs to activate; muster does not flash it again by itself"));
}

}  // namespace

std::unique_ptr<lifecycle::Phase> makeFirmwarePhase(const inventory::Cluster& cluster, bmc::BmcFleet& bmcs, Clock& clock, Workers& workers) {
  return std::make_unique<FirmwarePhase>(cluster, bmcs, clock, workers);
}

}  // namespace muster::firmware
