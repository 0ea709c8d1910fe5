// SPDX-License-Identifier: Apache-2.0
#include "agent/core/agent.h"

#include "agent/core/fitness.h"

#include "base/async/deadline.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/log.h"
#include "base/utf8.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>
#include <ctime>

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kPollSlack{15};  ///< beyond kPollWait, for the network
constexpr std::chrono::milliseconds kStartReportDelay{
    100};  ///< after this the controller is told that a task runs
constexpr std::size_t kMaxQueued = 16;
constexpr std::chrono::hours kRenewRetry{1};     ///< while the certificate still holds
constexpr std::string_view kNoSession = "none";  ///< a controller that reads it answers at once
constexpr std::size_t kMaxLoggedErrors = 16;     ///< until the next success

/// A pair test only uses the node: its two halves must run at the same time on two nodes, so
/// neither may stand in a queue.
bool changesNode(wire::TaskKind kind) {
  return kind != wire::TaskKind::Inspect && kind != wire::TaskKind::Probe &&
         kind != wire::TaskKind::RdmaPair && kind != wire::TaskKind::KernelLog &&
         kind != wire::TaskKind::ListFirmware;
}

/// Half of it leaves the node as it was. Checks load it, and run one at a time, but change nothing.
bool mayEndHalfWay(wire::TaskKind kind) {
  return !changesNode(kind) || kind == wire::TaskKind::RunChecks;
}

/// What the machine is, or what lies on its disks, may be another than it was; also where it
/// failed.
bool changesHardware(wire::TaskKind kind) {
  return kind == wire::TaskKind::InstallDriver || kind == wire::TaskKind::WriteImage ||
         kind == wire::TaskKind::EraseDisks;
}

/// Probes that a task names are reported with every poll from then on.
std::vector<std::string> probesNamedBy(const wire::AgentTask& task) {
  std::vector<std::string> names;
  auto params = jsonOrNone(task.params, kOrderJson);
  if (!params.is_object()) return names;
  const auto probes = params.value("probes", nlohmann::json::array());
  const auto verify = params.value("verify", nlohmann::json::object());
  for (const auto& name : probes) {
    if (name.is_string()) names.push_back(name);
  }
  for (const auto& [name, glob] : verify.items()) names.push_back(name);
  return names;
}

std::filesystem::path controllersFile(const AgentOptions& options) {
  return options.state_folder / "controllers";
}

std::filesystem::path healthRulesFile(const AgentOptions& options) {
  return options.state_folder / "health-rules.json";
}

/// Those that a controller named last, else those that the agent was started with.
wire::Controllers knownControllers(const AgentOptions& options) {
  wire::Controllers known(options.urls.empty() ? std::vector<io::Url>{options.url} : options.urls);
  const auto announced = io::readFile(controllersFile(options), wire::kMaxNameBytes);
  if (!announced) return known;
  if (const auto urls = wire::parseControllers(*announced))
    known.learn(*urls);
  else
    logWarning("agent", "{} is ignored: {}", controllersFile(options).string(), urls.error().str());
  return known;
}

}  // namespace

struct Agent::Running {
  wire::AgentTask task;
  TaskContextPtr context;
  asio::cancellation_signal cancel;
  bool unwanted = false;  ///< it is being ended
};

Result<std::unique_ptr<Agent>> Agent::create(AgentOptions options, TaskHandlers handlers,
                                             MachineAccess machine, Clock& clock) {
  TRY(table, TaskTable::open(options.state_folder / "tasks.json"));
  auto controllers = knownControllers(options);
  options.url = controllers.present();
  auto agent =
      std::unique_ptr<Agent>(new Agent(std::move(options), std::move(handlers), std::move(machine),
                                       clock, std::move(table), std::move(controllers)));
  TRY(boot_id, bootIdOf(agent->options_.root));
  agent->boot_id_ = std::move(boot_id);
  if (auto rules = io::readFile(healthRulesFile(agent->options_), wire::kMaxResultBytes))
    agent->useHealthRules(std::move(*rules));
  return agent;
}

Agent::Agent(AgentOptions options, TaskHandlers handlers, MachineAccess machine, Clock& clock,
             TaskTable table, wire::Controllers controllers)
    : options_(std::move(options)),
      handlers_(std::move(handlers)),
      machine_(std::move(machine)),
      clock_(clock),
      table_(std::move(table)),
      controllers_(std::move(controllers)) {}

// ---- the conversation

Task<void> Agent::run() {
  using namespace asio::experimental::awaitable_operators;
  auto polling = pollLoop();
  auto stop = stopped_.waitFor(clock_, 0, std::chrono::hours(24 * 365 * 10));
  co_await (std::move(polling) || std::move(stop));
  for (auto& running : running_) running->cancel.emit(asio::cancellation_type::terminal);
  while (!running_.empty()) {
    auto seen = task_ended_.version();
    if (running_.empty()) break;
    co_await task_ended_.waitFor(clock_, seen, std::chrono::hours(1));
  }
}

void Agent::stop() {
  stopping_ = true;
  stopped_.notify();
}

Task<void> Agent::pollLoop() {
  while (!stopping_) {
    Result<void> polled;
    try {
      polled = co_await pollOnce();
    } catch (const std::exception& problem) {
      if (stopping_) throw;
      polled = fail(ErrorCode::Internal, std::string("the poll failed: ") + problem.what());
    }
    if (polled) continue;
    co_await backOff(polled.error());
  }
}

/// One poll and what follows from it.
Async<void> Agent::pollOnce() {
  CO_TRY_OK(co_await ensureIdentity());
  co_await collectState();
  co_await collectHealth();
  auto seen = task_ended_.version();
  auto answered = co_await poll();
  if (!answered) {
    all_reported_ = false;  // whatever was wrong, the next poll leaves nothing out
    delta_.forget();
    co_return fail(answered.error());
  }
  const auto& response = *answered;
  auto executor = co_await asio::this_coro::executor;
  startWaiting(executor);
  if (busy()) {  // progress is reported every second, an end at once; what ends early is reported
                 // together
    co_await task_ended_.waitFor(clock_, seen,
                                 response.start.empty()
                                     ? std::chrono::milliseconds(wire::kPollWhileBusy)
                                     : kStartReportDelay);
  }
  co_return Result<void>();
}

/// Within a round of several controllers it goes on with the next one soon; from round to round the
/// pause grows.
Task<void> Agent::backOff(Error error) {
  const auto tried = options_.url.origin();
  const bool grows = controllers_.failed(error.code() == ErrorCode::Timeout);
  options_.url = controllers_.present();
  const auto next = options_.url.origin() == tried
                        ? "trying again until it works"
                        : fmt::format("the next to try is {}", options_.url.origin());
  if (logged_errors_.size() < kMaxLoggedErrors && logged_errors_.insert(error.str()).second)
    logWarning("agent", "{}; {}", error.str(), next);
  if (grows || backoff_ < kFirstBackoff)
    backoff_ = std::clamp<std::chrono::milliseconds>(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  const auto most = grows ? backoff_ : std::chrono::milliseconds(kFirstBackoff);
  std::uniform_int_distribution<long> spread(most.count() / 2, most.count());
  co_await clock_.sleep(std::chrono::milliseconds(spread(jitter_)));
}

/// The list of controllers is kept on disk: at the next boot the first of them may be away.
void Agent::updateControllers(const std::string& announced) {
  if (announced.empty() || std::exchange(announced_, announced) == announced) return;
  const auto urls = wire::parseControllers(announced);
  if (!urls)
    return logWarning("agent", "the controller's list of controllers is ignored: {}",
                      urls.error().str());
  if (!controllers_.learn(*urls)) return;
  logInfo("agent", "the controllers are {}", wire::toString(controllers_.all()));
  auto stored = io::makeDirs(options_.state_folder, 0700);
  if (stored)
    stored = io::writeFileAtomic(controllersFile(options_), wire::toString(controllers_.all()));
  if (!stored)
    logWarning("agent", "the controllers are forgotten with this boot: {}", stored.error().str());
}

Async<void> Agent::ensureIdentity() {
  if (!identity_) {
    auto loaded = loadIdentity(options_);
    if (!loaded && options_.mode == wire::Mode::Ram) {
      logInfo("agent", "enrolling with {}", options_.url.origin());
      loaded = co_await enroll(options_, machine_.clients);
    }
    if (!loaded) co_return fail(Error(loaded.error()).within("no identity"));
    identity_ = *loaded;
    client_ = machine_.clients(identity_->trust());
    logInfo("agent", "this is {}, certificate until {}", identity_->node,
            muster::toString(identity_->not_after));
  }
  if (!identity_->renewalDue(clock_.now()) || clock_.steady() < renew_not_before_)
    co_return Result<void>();
  auto renewed = co_await renewIdentity(options_, *identity_, *client_);
  if (renewed) {
    identity_ = *renewed;
    client_ = machine_.clients(identity_->trust());
    co_return Result<void>();
  }
  auto error = Error(renewed.error()).within("the certificate could not be renewed");
  if (identity_->not_after <= clock_.now()) co_return fail(std::move(error));
  logWarning("agent", "{}; it holds until {}", error.str(), muster::toString(identity_->not_after));
  renew_not_before_ = clock_.steady() + kRenewRetry;
  co_return Result<void>();
}

Async<wire::EnrollResponse> Agent::certify(std::string csr_pem) {
  if (!identity_) co_return fail(ErrorCode::Unavailable, "not enrolled");
  auto client =
      machine_.clients(identity_->trust());  // the poll's client may be in the middle of a wait
  co_return co_await requestCertificate(*client, options_.url, std::move(csr_pem));
}

/// Reads the machine's state when what is known is old. What cannot be read is left out: the agent
/// must poll in any case.
Task<void> Agent::collectState() {
  if (!hardware_tried_) {
    hardware_tried_ = true;
    auto found = co_await machine_.hardware();
    hardware_fresh_ = found.has_value();
    if (found) hardware_ = toJson(*found);
    if (!found) logWarning("agent", "the hardware could not be read: {}", found.error().str());
  }
  if (probes_stale_ || clock_.steady() - probed_at_ > kProbeRefresh) {
    probes_stale_ = false;
    probes_ = co_await machine_.probes(table_.watched());
    probed_at_ = clock_.steady();
  }
}

/// Read before each poll, so that what is reported is never older than that.
Task<void> Agent::collectHealth() {
  if (!machine_.health || (health_at_ && clock_.steady() - *health_at_ < kHealthRefresh)) co_return;
  const auto report = co_await machine_.health();
  health_ = toJson(report);
  health_at_ = clock_.steady();
  evaluate(report);
}

/// Says in a file whether the node may start a job, as of this look.
void Agent::evaluate(const wire::HealthReport& report) {
  Fitness fitness{FitnessState::Fit, {}, boot_id_, bootMilliseconds()};
  if (!rules_) {
    fitness.state = FitnessState::Unknown;
    fitness.reason = health_rules_.empty()
                         ? "no controller has said yet what symptoms mean"
                         : "what the controller says of symptoms cannot be read by this agent";
  } else if (auto why = wire::whyUnfit(report, *rules_)) {
    fitness.state = FitnessState::Unfit;
    fitness.reason = std::move(*why);
  }
  const auto written = writeFitness(options_.root, fitness);
  if (!written && !std::exchange(fitness_lost_, true))
    logWarning("agent", "whether this node is fit cannot be said to its scheduler: {}",
               written.error().str());
  if (written) fitness_lost_ = false;
}

void Agent::useHealthRules(std::string text) {
  auto read = wire::parseHealthRules(text);
  if (!read)
    logWarning("agent", "what the controller says of symptoms is ignored: {}", read.error().str());
  rules_.reset();
  if (read) rules_ = std::move(*read);
  health_rules_ = std::move(text);
}

void Agent::updateHealthRules(const std::string& text) {
  if (text.empty() || text == health_rules_) return;
  useHealthRules(text);
  auto stored = io::makeDirs(options_.state_folder, 0700);
  if (stored) stored = io::writeFileAtomic(healthRulesFile(options_), text);
  if (!stored)
    logWarning("agent", "what symptoms mean is forgotten with this boot: {}", stored.error().str());
  health_at_.reset();  // evaluated by them at once
}

wire::PollRequest Agent::pollRequest() {
  wire::PollRequest request;
  request.mode = options_.mode;
  request.boot_id = boot_id_;
  request.agent_version = kAgentVersion;
  request.image_digest = options_.image_digest;
  request.probes = probes_;
  request.session =
      controllers_.several() && !controllers_.proven() ? std::string(kNoSession) : session_;
  request.fresh = !probes_stale_ && hardware_fresh_;
  request.wants_answer = !leaving_.empty();
  if (machine_.health)
    request.health_rules = health_rules_.empty() ? std::string(wire::kNoHealthRules)
                                                 : wire::digestOfHealthRules(health_rules_);
  last_sequence_ = std::max(last_sequence_ + 1, bootMilliseconds());
  request.sequence = last_sequence_;
  if (!all_reported_ || hardware_ != reported_hardware_) request.hardware = hardware_;
  if (!all_reported_ || health_ != reported_health_) request.health = health_;
  for (const auto& entry : table_.entries()) {
    request.reports.push_back(entry.report);
    auto& report = request.reports.back();
    if (report.phase == wire::TaskPhase::Done && all_reported_ && entry.acknowledged)
      report.result.clear();
    for (const auto& running : running_) {
      if (running->task.id != report.id) continue;
      auto now = running->context->progressNow();
      report.fraction = now.fraction;
      report.text = std::move(now.text);
      report.reasons = std::move(now.reasons);
    }
  }
  for (const auto& [id, report] : refused_) {
    if (request.reports.size() >= wire::kMaxTasks) break;
    request.reports.push_back(report);
  }
  return request;
}

Async<wire::PollResponse> Agent::poll() {
  wire::PollRequest request = pollRequest();
  std::vector<std::string> reported;
  for (const auto& report : request.reports) {
    if (wire::isFinished(report.phase)) reported.push_back(report.id);
  }
  auto message = postTo(options_.url, "/agent/v1/poll", toJson(delta_.deltaOf(request)));
  message.timeout = controllers_.several() && !controllers_.proven()
                        ? std::chrono::milliseconds(kFirstAnswer)
                        : wire::kPollWait + kPollSlack;
  auto answered = co_await client_->send(std::move(message));
  CO_TRY(body, bodyOf(answered));
  CO_TRY(response, wire::parsePollResponse(body));
  delta_.acknowledged(request, response);
  if (!request.health.empty()) reported_health_ = request.health;
  if (!request.hardware.empty()) reported_hardware_ = request.hardware;
  if (!logged_errors_.empty()) logInfo("agent", "{} answers", options_.url.origin());
  logged_errors_.clear();
  backoff_ = std::chrono::milliseconds(0);
  handleResponse(response, reported);
  controllers_.answered();
  updateControllers(response.controllers);
  updateHealthRules(response.health_rules);
  co_return response;
}

void Agent::handleResponse(const wire::PollResponse& response,
                           const std::vector<std::string>& reported) {
  if (response.session != session_ ||
      !controllers_.proven()) {  // another life of the controller, or another controller: it gets
                                 // everything again
    session_ = response.session;
    all_reported_ = false;
    refused_.clear();
    for (auto& entry : table_.entries()) entry.acknowledged = false;
  } else {
    all_reported_ = true;
    for (auto& entry : table_.entries()) {
      if (std::find(reported.begin(), reported.end(), entry.report.id) != reported.end())
        entry.acknowledged = true;
    }
    if (!leaving_.empty() &&
        std::find(reported.begin(), reported.end(), leaving_) != reported.end()) {
      leaving_.clear();
      leave_();
    }
  }
  endUnwanted(response.forget);
  table_.forget(response.forget);
  for (const auto& task : response.start) begin(task);
}

// ---- tasks

Result<void> Agent::admit(const wire::AgentTask& task) const {
  if (!handlers_.contains(task.kind)) {
    return fail(ErrorCode::InvalidInput, fmt::format("{} is no task for an agent in {} mode",
                                                     toString(task.kind), toString(options_.mode)));
  }
  if (waiting_.size() >= kMaxQueued)
    return fail(ErrorCode::Conflict, "too many tasks wait on this node");
  return {};
}

void Agent::begin(const wire::AgentTask& task) {
  if (table_.find(task.id)) return;
  if (auto passed = table_.pass(task.fence); !passed) return refuse(task, passed.error());
  refused_.erase(task.id);
  bool ran_before = table_.hasForgotten(task.id);
  if (auto stored = table_.add(task); !stored)
    return finish(task, fail(Error(stored.error()).within("the task was not started")));
  if (ran_before)
    return finish(task,
                  fail(ErrorCode::Conflict,
                       "this task ran before and its outcome was forgotten; it is not run again"));
  logInfo("agent", "task {} ({}) accepted", task.id, toString(task.kind));
  table_.watch(probesNamedBy(task));
  if (auto admitted = admit(task); !admitted) return finish(task, fail(admitted.error()));
  waiting_.push_back(task);
}

/// The id stays free: the controller that holds the claim may order the same task.
void Agent::refuse(const wire::AgentTask& task, const Error& why) {
  logWarning("agent", "task {} refused: {}", task.id, why.str());
  if (refused_.size() >= kMaxQueued) refused_.erase(refused_.begin());
  wire::AgentTaskReport report;
  report.id = task.id;
  report.phase = wire::TaskPhase::Failed;
  report.code = why.code();
  report.text = why.str();
  refused_[task.id] = std::move(report);
}

/// Starts what may start: in order, and of those that change the node one at a time.
void Agent::startWaiting(asio::any_io_executor executor) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (changesNode(it->kind) && !exclusive_.expired()) {
      ++it;
      continue;
    }
    auto running = std::make_shared<Running>();
    running->task = std::move(*it);
    running->context = std::make_shared<TaskContext>(running->task.id, running->task.deadline);
    it = waiting_.erase(it);
    if (changesNode(running->task.kind)) exclusive_ = running->context;
    running_.push_back(running);
    wire::AgentTaskReport report;
    report.id = running->task.id;
    report.phase = wire::TaskPhase::Running;
    table_.update(report);
    auto ended = [this, running](std::exception_ptr) {
      running_.remove(running);
      task_ended_.notify();
    };
    asio::co_spawn(executor, carryOut(running),
                   asio::bind_cancellation_slot(running->cancel.slot(), std::move(ended)));
  }
}

/// A change of the node goes on: half of one is worse than all of it.
void Agent::endUnwanted(const std::vector<std::string>& ids) {
  const auto all = running_;  // one that ends leaves the list
  for (const auto& running : all) {
    const auto& task = running->task;
    const bool is_named = std::ranges::find(ids, task.id) != ids.end();
    if (running->unwanted || !is_named || !mayEndHalfWay(task.kind)) continue;
    running->unwanted = true;
    logInfo("agent", "task {} is ended: nobody wants its outcome", task.id);
    running->context->cancel();
    running->cancel.emit(asio::cancellation_type::terminal);
  }
}

Task<void> Agent::carryOut(std::shared_ptr<Running> running) {
  std::optional<Result<nlohmann::json>> outcome;
  try {
    auto work = invoke(running->task, running->context);
    outcome = co_await withDeadline(clock_, running->task.deadline,
                                    std::string(toString(running->task.kind)), std::move(work));
  } catch (const std::exception& problem) {
    outcome = fail(ErrorCode::Internal,
                   std::string("the task failed with an exception: ") + problem.what());
  }
  if (running->unwanted)
    outcome = fail(ErrorCode::Unavailable, "it was ended: nobody wants its outcome any more");
  running->context->cancel();
  if (!stopping_) finish(running->task, std::move(*outcome));
}

Async<nlohmann::json> Agent::invoke(wire::AgentTask task, TaskContextPtr context) {
  auto params = jsonOrNone(task.params, kOrderJson);
  if (!params.is_object())
    co_return fail(ErrorCode::InvalidInput, "the parameters are not a JSON object");
  auto handler = handlers_.find(task.kind);
  co_return co_await handler->second(std::move(params), std::move(context));
}

/// Restarts the machine, or gives way to what was started, once the controller has heard of it.
void Agent::leaveAfter(const wire::AgentTask& task) {
  leaving_ = task.id;
  leave_ = task.kind == wire::TaskKind::Reboot ? machine_.reboot : machine_.give_way;
  logInfo("agent", "{} once the controller has its report",
          task.kind == wire::TaskKind::Reboot ? "restarting the machine"
                                              : "giving way to the live image");
}

void Agent::finish(const wire::AgentTask& task, Result<nlohmann::json> outcome) {
  wire::AgentTaskReport report;
  report.id = task.id;
  if (outcome) {
    report.result = outcome->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (report.result.size() > wire::kMaxResultBytes)
      outcome = fail(ErrorCode::Internal, "the result is larger than the protocol carries");
  }
  report.phase = outcome ? wire::TaskPhase::Done : wire::TaskPhase::Failed;
  if (outcome) {
    report.fraction = 1;
    if (task.kind == wire::TaskKind::Reboot || task.kind == wire::TaskKind::StartImage)
      leaveAfter(task);
    if (task.kind == wire::TaskKind::Inspect) hardware_ = report.result;
    logInfo("agent", "task {} done", task.id);
  } else {
    report.result.clear();
    report.code = outcome.error().code();
    for (const auto& reason : outcome.error().reasons())
      if (const auto known = reason.as<wire::TaskReason>()) report.reasons.push_back(*known);
    report.text = std::string(cutToBytes(
        outcome.error().str(), wire::kMaxTextBytes / 4));  // what is no UTF-8 grows on the way
    logWarning("agent", "task {} failed: {}", task.id, report.text);
  }
  probes_stale_ = true;
  if (changesHardware(task.kind)) hardware_tried_ = hardware_fresh_ = false;
  if (changesNode(task.kind)) health_at_.reset();  // a driver may have come or gone
  table_.update(report);
}

}  // namespace muster::agent
