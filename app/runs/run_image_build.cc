// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_image_build.h"

#include "app/runs/image_builder.h"
#include "app/runs/run_change.h"
#include "app/runs/run_rounds.h"
#include "app/runs/run_scope.h"
#include "base/io/files.h"
#include "base/printable.h"
#include "inventory/model/cluster.h"

#include <deque>
#include <fstream>

namespace muster::app {

using namespace lifecycle;

namespace {

constexpr std::chrono::milliseconds kBuildPoll{1'000};
constexpr std::chrono::hours kLongestBuild{12};  ///< of one image
constexpr std::size_t kMaxToldLines = 500;       ///< of one image; the log has all
constexpr std::size_t kKeptLines = 5;            ///< that a failure is told with
constexpr std::size_t kMaxLineBytes = 300;
constexpr std::string_view kPrefix = "image.", kNotBuilt = "not built", kBuilt = "built";

Async<std::vector<std::string>> missingNow(RunWork& work, std::string only) {
  if (!work.images)
    co_return fail(ErrorCode::Internal, "this process cannot build images; nothing was built");
  co_return co_await work.images->missing(std::move(only));
}

void tellLine(RunWork& work, const std::string& id, const std::string& text) {
  (void)work.store.addEvent({0, work.clock.now(), EventKind::Note, Subject::cluster(),
                             std::string(kRunEventPrefix) + id, text});
}

/// Of the inventory, which each build reads: no reason why one fails.
bool isWarning(std::string_view line) { return line.contains(": warning: "); }

/// What a build has written since it was last asked, in whole lines.
class LogTail {
 public:
  explicit LogTail(std::filesystem::path file) : file_(std::move(file)) { remove(); }
  ~LogTail() { remove(); }
  LogTail(const LogTail&) = delete;

  std::vector<std::string> next() {
    std::vector<std::string> out;
    std::ifstream in(file_, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(read_));
    std::string line;
    while (std::getline(in, line)) {
      if (in.eof()) break;  // not ended yet
      read_ += line.size() + 1;
      line = printable(line.substr(0, kMaxLineBytes));
      if (line.empty()) continue;
      if (!isWarning(line)) last_.push_back(line);
      if (last_.size() > kKeptLines) last_.pop_front();
      out.push_back(std::move(line));
    }
    return out;
  }
  std::string last() const {
    std::string out;
    for (const auto& line : last_) out += (out.empty() ? "" : " | ") + line;
    return out;
  }

 private:
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }

  const std::filesystem::path file_;
  std::size_t read_ = 0;
  std::deque<std::string> last_;
};

/// Answers the last words of the build.
Async<std::string> buildOne(RunWork& work, Run run, std::string name) {
  const auto log = work.images->folder() / fmt::format("image-build-{}.log", run.id);
  LogTail tail(log);
  CO_TRY(child, work.images->start(name, run.image_build.over, log));
  tellLine(work, run.id, fmt::format("building {}", name));
  const auto until = work.clock.steady() + kLongestBuild;
  std::size_t told = 0;
  for (bool runs = true; runs;) {
    co_await work.clock.sleep(kBuildPoll);
    runs = child->running();
    for (const auto& line : tail.next())
      if (++told <= kMaxToldLines) tellLine(work, run.id, fmt::format("{}: {}", name, line));
    if (work.clock.steady() >= until)
      co_return fail(ErrorCode::Timeout,
                     fmt::format("{} was not built within {} h", name, kLongestBuild.count()));
  }
  co_return tail.last();
}

Async<Plan> planImageBuild(RunWork& work, Run run) {
  CO_TRY(missing, co_await missingNow(work, run.image_build.image));
  Plan plan;
  plan.inventory_digest = work.cluster.digest;
  plan.policy.only.insert(Subject::cluster());
  for (const auto& name : missing) {
    Action action;
    action.facet = {Subject::cluster(), FacetName(std::string(kPrefix) + name)};
    action.id = action.facet.str();
    action.phase = "images";
    action.from = std::string(kNotBuilt);
    action.to = std::string(kBuilt);
    action.reason = "it is declared, and not in the cache";
    plan.actions.push_back(std::move(action));
  }
  plan.facts_digest = digestOf(plan.facts_used);
  co_return std::move(plan);
}

Async<void> buildForRun(RunWork& work, RunRows& rows, Run run) {
  CO_TRY(missing, co_await missingNow(work, run.image_build.image));
  CO_TRY_OK(changeRun(work.runs, run.id, [&](Run row, std::string&) -> Result<Run> {
    ++row.progress.rounds;
    row.progress.planned = row.progress.done + missing.size();
    return row;
  }));
  for (const auto& name : missing) {
    CO_TRY(words, co_await buildOne(work, run, name));
    CO_TRY(left, co_await missingNow(work, name));
    if (!left.empty()) {
      const auto text = fmt::format("{} was not built: {}", name, words);
      CO_TRY_OK(rows.move(run.id, RunState::Failed, RunReason::ActionFailed, text, [&](Run& row) {
        ++row.progress.failed;
        addProblems(row, {text});
      }));
      co_return Result<void>();
    }
    tellLine(work, run.id, fmt::format("{} is built", name));
    CO_TRY_OK(changeRun(work.runs, run.id, [](Run row, std::string&) -> Result<Run> {
      ++row.progress.done;
      return row;
    }));
  }
  CO_TRY_OK(rows.move(run.id, RunState::Done, RunReason::None));
  co_return Result<void>();
}

class ImageBuildRules final : public RunKindRules {
 public:
  Result<void> accept(Run& run) const override {
    if (!run.apply.nodes.empty())
      return fail(ErrorCode::InvalidInput, "a build of images is about no nodes; nothing was done");
    const auto& asked = run.image_build;
    if (!asked.over.empty() && (asked.image.empty() || asked.image == kRamOsName))
      return fail(ErrorCode::InvalidInput, "over is for one image: name it; nothing was done");
    return {};
  }
  std::string subject(const Run& run) const override {
    return run.image_build.image.empty() ? "what is missing" : run.image_build.image;
  }
  bool isAboutNodes() const override { return false; }
  Result<Policy> policy(const RunWork&, const Run&) const override {
    Policy none;
    none.only.insert(Subject::cluster());
    return none;
  }
  Async<RunPlan> plan(RunWork& work, Run run, FactSet, Policy) const override {
    CO_TRY(plan, co_await planImageBuild(work, std::move(run)));
    co_return RunPlan{std::move(plan)};
  }
  /// What others have begun is apply's.
  std::optional<std::string> nothingLeft(const Run& run, const Plan& plan,
                                         const std::set<std::string>& open) const override {
    return plan.empty() && !run.begun ? "" : RunKindRules::nothingLeft(run, plan, open);
  }
  Async<void> carryOut(RunRounds& rounds, Run run, std::optional<Plan>) const override {
    co_return co_await buildForRun(rounds.work(), rounds.rows(), std::move(run));
  }
};

}  // namespace

const RunKindRules& imageBuildRules() {
  static const ImageBuildRules rules;
  return rules;
}

}  // namespace muster::app
