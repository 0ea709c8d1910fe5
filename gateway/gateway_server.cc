// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway_server.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "gateway/enrollment.h"
#include "gateway/failed_attempts.h"
#include "gateway/node_record.h"
#include "gateway/refused_agents.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "wire/disk_rule.h"
#include "wire/slowness.h"

#include <algorithm>

namespace muster::gateway {
namespace {

constexpr std::chrono::seconds kFirstCallWait{
    20};  ///< after our own restart a live agent calls within its longest back-off
constexpr std::chrono::seconds kDeadlineGrace{
    30};  ///< the agent itself ends a task at its deadline and says so
constexpr std::chrono::hours kLongestTask{7 * 24};  ///< an agent takes no longer one (wire/)
constexpr std::string_view kLedgerKey = "store/ledger";
constexpr std::chrono::seconds kStateCheckInterval{5};  ///< silence rings no bell

constexpr const char* kCertificateRoute = "/agent/v1/certificate";
/// A token and a certificate request; with what a TPM says it is twice as much. Before that nobody
/// has shown who they are.
constexpr std::size_t kEnrollBodyBytes = 32u << 10;
constexpr std::size_t kPollBodyBytes =
    16u << 20;  ///< with task reports; only from nodes of the inventory

int statusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidInput:
    case ErrorCode::Corrupt:
      return 400;
    case ErrorCode::Denied:
      return 403;
    case ErrorCode::NotFound:
      return 404;
    case ErrorCode::Conflict:
      return 409;
    case ErrorCode::Unavailable:
    case ErrorCode::Timeout:
      return 503;
    case ErrorCode::Internal:
      return 500;
  }
  return 500;
}

io::ServerResponse answerError(const Error& error) {
  return io::ServerResponse::json(statusOf(error.code()),
                                  jsonText(nlohmann::json{{"error", error.str()}}));
}

template <class Message>
io::ServerResponse answer(const Result<Message>& result) {
  return result ? io::ServerResponse::json(200, toJson(*result)) : answerError(result.error());
}

class Gateway final : public GatewayServer, public RefusedAgents {
 public:
  Gateway(const inventory::Cluster& cluster, const signer::Authority& ca, lifecycle::Store& store,
          Clock& clock, const NetworkEvidence& evidence, std::string controllers,
          HealthRulesFor health_rules)
      : cluster_(cluster),
        enrollment_(cluster, ca, store, clock, evidence),
        store_(store),
        clock_(clock),
        controllers_(std::move(controllers)),
        health_rules_(std::move(health_rules)),
        session_(io::randomToken(12)) {}

  std::vector<io::Route> routes() override;
  Result<std::string> openEnrollment(const NodeName& node, const Mac& mac) override {
    return enrollment_.openEnrollment(node, mac);
  }

  std::optional<AgentState> state(const NodeName& node) const override;
  bool isRefused(const NodeName& node) const override;
  Async<AgentState> waitFor(NodeName node, std::optional<wire::Mode> mode, std::string not_boot_id,
                            std::chrono::seconds limit) override;
  Result<void> submit(const NodeName& node, wire::AgentTask task) override;
  std::optional<wire::AgentTaskReport> report(const NodeName& node,
                                              const std::string& task_id) const override;
  Task<std::optional<wire::AgentTaskReport>> reportWithin(NodeName node, std::string task_id,
                                                          std::chrono::milliseconds limit) override;
  void abandon(const NodeName& node, const std::string& task_id) override;
  Async<wire::AgentTaskReport> runTask(NodeName node, wire::AgentTask task) override;

 private:
  Task<io::ServerResponse> handleEnroll(io::ServerRequest request);
  Task<io::ServerResponse> handleAttest(io::ServerRequest request);
  Task<io::ServerResponse> handleAttested(io::ServerRequest request);
  Task<io::ServerResponse> handleCertificate(io::ServerRequest request);
  Task<io::ServerResponse> handlePoll(io::ServerRequest request);
  Task<io::ServerResponse> handleRenewal(io::ServerRequest request);
  Async<wire::PollResponse> poll(NodeName node, wire::PollRequest request, io::ServerRequest from);
  Async<void> restoreUntouchedKey(NodeName node);
  Async<void> admitTasks(NodeName node, wire::Mode mode, std::string key_id,
                         std::vector<wire::AgentTask> tasks);
  bool isRamOsActive(const NodeName& node) const;
  io::Admission admitUnauthenticated(const io::ServerRequest& head);
  io::Admission admitNode(const io::ServerRequest& head, std::size_t max_body_bytes);
  Result<NodeName> callerOf(const io::ServerRequest& request);
  /// A refusal counts against whoever asked (FailedAttempts).
  template <class Answer>
  void noteFailure(const Result<Answer>& answer, const io::ServerRequest& request) {
    if (!answer && answer.error().code() == ErrorCode::Denied)
      attempts_.failed(request.remote_address, clock_.steady());
  }
  Async<wire::AgentTaskReport> awaitEnd(NodeName node, std::string id,
                                        std::chrono::steady_clock::time_point limit);
  std::string lastPoll(const NodeName& node) const;

  Result<wire::Fence> fenceOf(const NodeName& node);

  const inventory::Cluster& cluster_;
  Enrollment enrollment_;
  lifecycle::Store& store_;
  Clock& clock_;
  const std::string controllers_;
  const HealthRulesFor health_rules_;
  std::string session_;
  LogLimit log_limit_;
  FailedAttempts attempts_;
  std::string ledger_;                      ///< read when first needed
  std::map<NodeName, NodeRecord> records_;  ///< bounded: only nodes of the inventory
  std::map<NodeName, std::chrono::steady_clock::time_point>
      refused_;  ///< likewise: the last call of an installed agent that was not listened to
};

std::vector<io::Route> Gateway::routes() {
  const io::Admit unauthenticated = [this](const io::ServerRequest& head) {
    return admitUnauthenticated(head);
  };
  const io::Admit known = [this](const io::ServerRequest& head) {
    return admitNode(head, kEnrollBodyBytes);
  };
  return {
      {"POST", "/agent/v1/enrol",
       [this](io::ServerRequest request) { return handleEnroll(std::move(request)); },
       unauthenticated},
      {"POST", "/agent/v1/attest",
       [this](io::ServerRequest request) { return handleAttest(std::move(request)); },
       unauthenticated},
      {"POST", "/agent/v1/attested",
       [this](io::ServerRequest request) { return handleAttested(std::move(request)); },
       unauthenticated},
      {"POST", kCertificateRoute,
       [this](io::ServerRequest request) { return handleCertificate(std::move(request)); }, known},
      {"POST", "/agent/v1/renewal",
       [this](io::ServerRequest request) { return handleRenewal(std::move(request)); }, known},
      {"POST", "/agent/v1/poll",
       [this](io::ServerRequest request) { return handlePoll(std::move(request)); },
       [this](const io::ServerRequest& head) { return admitNode(head, kPollBodyBytes); }},
  };
}

// ---- who may call, before anything of a body is read

io::Admission Gateway::admitUnauthenticated(const io::ServerRequest& head) {
  if (attempts_.mayTry(head.remote_address, clock_.steady()))
    return {kEnrollBodyBytes, std::nullopt};
  auto refusal = io::ServerResponse::json(
      429,
      R"({"error":"too many enrollments from this address have failed; try again in a minute"})");
  refusal.headers["Retry-After"] = "60";
  return {0, std::move(refusal)};
}

/// An expired certificate opens the one route that gives a new one (handleCertificate).
io::Admission Gateway::admitNode(const io::ServerRequest& head, std::size_t max_body_bytes) {
  if (!head.expired_client_common_name.empty() && head.path() == kCertificateRoute) {
    if (enrollment_.find(NodeName(head.expired_client_common_name)))
      return {max_body_bytes, std::nullopt};
    return {0, answerError(Error(ErrorCode::Denied, "node " + head.expired_client_common_name +
                                                        " is not in the inventory"))};
  }
  const auto node = callerOf(head);
  return node ? io::Admission{max_body_bytes, std::nullopt}
              : io::Admission{0, answerError(node.error())};
}

// ---- what agents call

/// The node that the client certificate names.
Result<NodeName> Gateway::callerOf(const io::ServerRequest& request) {
  if (request.client_common_name.empty())
    return fail(ErrorCode::Denied, "a client certificate of this controller is needed");
  NodeName node(request.client_common_name);
  if (enrollment_.find(node)) return node;
  if (log_limit_.mayWrite("agent"))
    logWarning("agent", "{} polled from {} with a certificate, but is not in the inventory",
               node.str(), request.remote_address);
  return fail(ErrorCode::Denied, "node " + node.str() + " is not in the inventory");
}

Task<io::ServerResponse> Gateway::handleEnroll(io::ServerRequest request) {
  auto parsed = wire::parseEnrollRequest(request.body);
  if (!parsed) co_return answerError(parsed.error());
  auto answer = co_await enrollment_.enroll(*parsed, request.remote_address);
  if (answer) co_return io::ServerResponse::json(200, toJson(*answer));
  if (answer.error().code() == ErrorCode::Denied && enrollment_.mustAttest(parsed->mac))
    co_return io::ServerResponse::json(
        403, jsonText(nlohmann::json{{"error", answer.error().str()}, {"attest", true}}));
  noteFailure(answer, request);
  co_return answerError(answer.error());
}

Task<io::ServerResponse> Gateway::handleAttest(io::ServerRequest request) {
  auto parsed = wire::parseAttestRequest(request.body);
  if (!parsed) co_return answerError(parsed.error());
  const auto challenge = enrollment_.challenge(*parsed, request.remote_address);
  noteFailure(challenge, request);
  co_return answer(challenge);
}

Task<io::ServerResponse> Gateway::handleAttested(io::ServerRequest request) {
  auto parsed = wire::parseAttestedRequest(request.body);
  if (!parsed) co_return answerError(parsed.error());
  const auto enrolled =
      co_await enrollment_.enrollAttested(std::move(*parsed), request.remote_address);
  noteFailure(enrolled, request);
  co_return answer(enrolled);
}

/// The only route that an expired certificate opens: an agent that was away for too long would
/// never come back otherwise.
Task<io::ServerResponse> Gateway::handleCertificate(io::ServerRequest request) {
  const bool late = !request.expired_client_common_name.empty();
  auto node =
      late ? Result<NodeName>(NodeName(request.expired_client_common_name)) : callerOf(request);
  if (!node) co_return answerError(node.error());
  auto parsed = wire::parseEnrollRequest(request.body);
  if (!parsed) co_return answerError(parsed.error());
  co_return answer(
      co_await (late ? enrollment_.certifyLate(*node, request.client_key_id, parsed->csr_pem,
                                               request.remote_address)
                     : enrollment_.certify(*node, request.client_key_id, parsed->csr_pem)));
}

Task<io::ServerResponse> Gateway::handleRenewal(io::ServerRequest request) {
  auto node = callerOf(request);
  if (!node) co_return answerError(node.error());
  auto parsed = wire::parseEnrollRequest(request.body);
  if (!parsed) co_return answerError(parsed.error());
  co_return answer(co_await enrollment_.renewRam(*node, request.client_key_id, parsed->csr_pem));
}

bool Gateway::isRamOsActive(const NodeName& node) const {
  const auto known = state(node);
  return known && known->mode == wire::Mode::Ram;
}

Task<io::ServerResponse> Gateway::handlePoll(io::ServerRequest request) {
  auto node = callerOf(request);
  if (!node) co_return answerError(node.error());
  auto parsed = wire::parsePollRequest(request.body);
  request.releaseBody();  // a poll waits for long
  if (!parsed) co_return answerError(parsed.error());
  if (const auto admitted = co_await enrollment_.admit(*node, request.client_key_id, parsed->mode,
                                                       isRamOsActive(*node));
      !admitted) {
    if (admitted.error().code() == ErrorCode::Denied && parsed->mode == wire::Mode::Disk)
      refused_[*node] = clock_.steady();
    co_return answerError(admitted.error());
  }
  refused_.erase(*node);
  auto response = answer(co_await poll(*node, std::move(*parsed), std::move(request)));
  if (const double slowness = slownessOf(clock_); slowness > 1)
    response.headers[wire::kSlownessHeader] = fmt::format("{:g}", slowness);
  co_return response;
}

/// Does the task write over the disk that the installed system is on, which is the one of `rule`?
/// In doubt it does: the node is imaged again then.
bool overwritesInstalled(const wire::AgentTask& task, const wire::Hardware& hardware,
                         const std::string& rule) {
  if (task.kind == wire::TaskKind::WriteImage) return true;
  if (task.kind != wire::TaskKind::EraseDisks) return false;
  const auto params = jsonOrNone(task.params, kOrderJson);
  const auto serials = params.is_object() ? params.value("disk_serials", std::vector<std::string>())
                                          : std::vector<std::string>();
  const auto stays = [&](const std::string& serial) {
    return std::find(serials.begin(), serials.end(), serial) == serials.end();
  };
  const auto meant = wire::DiskRule::parse(rule);
  const auto fitting =
      meant && !meant->any() ? meant->fitting(hardware.disks) : std::vector<const wire::Disk*>();
  if (serials.empty()) return true;
  if (!fitting.empty())
    return std::none_of(fitting.begin(), fitting.end(),
                        [&](const auto* disk) { return stays(disk->serial); });
  return std::none_of(hardware.disks.begin(), hardware.disks.end(), [&](const auto& disk) {
    return disk.use == wire::DiskUse::System && stays(disk.serial);
  });
}

/// The poll may have waited for long: the caller may be of an earlier life by now. A system's key
/// ends before its disk does.
Async<void> Gateway::admitTasks(NodeName node, wire::Mode mode, std::string key_id,
                                std::vector<wire::AgentTask> tasks) {
  if (tasks.empty()) co_return Result<void>();
  CO_TRY_OK(co_await enrollment_.admit(node, std::move(key_id), mode, isRamOsActive(node)));
  const auto now = state(node);
  const auto* declared = enrollment_.find(node);
  const auto profile =
      declared ? cluster_.profiles.find(declared->profile) : cluster_.profiles.end();
  const auto rule = profile == cluster_.profiles.end() ? std::string() : profile->second.disk;
  if (!now || mode != wire::Mode::Ram) co_return Result<void>();
  for (const auto& task : tasks) {
    if (!overwritesInstalled(task, now->hardware, rule)) continue;
    CO_TRY_OK(co_await enrollment_.endInstalled(node, task.id));
  }
  co_return Result<void>();
}

/// A refusal before the first byte leaves the installed system what it was. It may be known before
/// the agent is: reports are listed with every poll.
Async<void> Gateway::restoreUntouchedKey(NodeName node) {
  std::vector<std::string> untouched;
  for (const auto& report : records_[node].reports)
    if (report.phase == wire::TaskPhase::Failed && report.has(wire::TaskReason::DisksUntouched))
      untouched.push_back(report.id);
  if (untouched.empty()) co_return Result<void>();
  if (const auto given = co_await enrollment_.restoreInstalled(node, std::move(untouched)); !given)
    logWarning("agent", "{} touched no disk, but its key could not be given back yet: {}",
               node.str(), given.error().str());
  co_return Result<void>();
}

Async<wire::PollResponse> Gateway::poll(NodeName node, wire::PollRequest request,
                                        io::ServerRequest from) {
  const auto mode = request.mode;
  wire::PollResponse answer;
  answer.session = session_;
  answer.controllers = controllers_;
  answer.supports_delta = true;
  if (!request.session.empty() && request.session != session_)
    co_return answer;  // it says everything again
  NodeRecord& record = records_[node];
  if (request.unchanged_since != 0 && !record.hasStateOf(request)) {
    answer.session.clear();  // likewise
    co_return answer;
  }
  CO_TRY(news, record.apply(node, std::move(request), from.remote_address, clock_));
  if (!news) co_return fail(ErrorCode::Conflict, "a later poll of " + node.str() + " is known");
  std::uint64_t mine = ++record.polls;
  record.work.notify();  // an older poll that still waits is over
  std::uint64_t seen = record.work.version();
  record.changed.notify();
  if (mode == wire::Mode::Ram) {
    CO_TRY_OK(co_await restoreUntouchedKey(node));
  }

  answer.forget = record.takeObsolete();
  if (!record.health_rules.empty() && health_rules_)
    if (const auto rules = health_rules_(node); rules && rules->digest != record.health_rules)
      answer.health_rules = rules->text;
  auto until = clock_.steady() + wire::kPollWait;
  bool at_once = !answer.health_rules.empty() || !answer.forget.empty() || record.busy() ||
                 record.wants_answer;
  while (!at_once && record.polls == mine && record.waiting.empty() && record.abandoned.empty() &&
         clock_.steady() < until) {
    co_await record.work.waitFor(
        clock_, seen, std::chrono::ceil<std::chrono::milliseconds>(until - clock_.steady()));
    seen = record.work.version();
  }
  if (record.polls != mine) co_return answer;
  answer.forget.insert(answer.forget.end(), record.abandoned.begin(), record.abandoned.end());
  CO_TRY_OK(co_await admitTasks(node, mode, from.client_key_id, record.waiting));
  if (record.polls == mine) answer.start = record.waiting;
  co_return answer;
}

// ---- what the controller's phases call

std::optional<AgentState> Gateway::state(const NodeName& node) const {
  auto it = records_.find(node);
  if (it == records_.end() || !it->second.state) return std::nullopt;
  if (clock_.steady() - it->second.last_poll > limitHere(clock_, wire::kAgentTimeout))
    return std::nullopt;
  return it->second.state;
}

bool Gateway::isRefused(const NodeName& node) const {
  const auto last = refused_.find(node);
  return last != refused_.end() &&
         clock_.steady() - last->second <= limitHere(clock_, wire::kAgentTimeout);
}

std::string Gateway::lastPoll(const NodeName& node) const {
  auto it = records_.find(node);
  if (it == records_.end() || !it->second.state)
    return "it has not polled since this controller started";
  const auto& last = *it->second.state;
  return fmt::format("last poll at {} from {}: {} mode, boot {}", muster::toString(last.last_seen),
                     last.address, toString(last.mode), last.boot_id);
}

Async<AgentState> Gateway::waitFor(NodeName node, std::optional<wire::Mode> mode,
                                   std::string not_boot_id, std::chrono::seconds limit) {
  if (!enrollment_.find(node))
    co_return fail(ErrorCode::NotFound, "node " + node.str() + " is not in the inventory");
  NodeRecord& record = records_[node];
  auto until = clock_.steady() + limit;
  while (true) {
    std::uint64_t seen = record.changed.version();
    auto now = state(node);
    bool fits = now && (!mode || now->mode == *mode) &&
                (not_boot_id.empty() || now->boot_id != not_boot_id);
    if (fits) co_return *now;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.steady());
    if (left <= std::chrono::milliseconds(0)) break;
    co_await record.changed.waitFor(clock_, seen, left);
  }
  co_return fail(ErrorCode::Timeout,
                 fmt::format("the agent of {} did not poll{} within {} s; {}", node.str(),
                             mode ? fmt::format(" in {} mode", toString(*mode)) : "", limit.count(),
                             lastPoll(node)));
}

Result<void> Gateway::submit(const NodeName& node, wire::AgentTask task) {
  if (task.id.empty() || task.id.size() > wire::kMaxNameBytes)
    return fail(ErrorCode::InvalidInput, "a task needs an id of at most 512 bytes");
  auto it = records_.find(node);
  if (it != records_.end()) {
    const auto* known = it->second.report(task.id);
    if (known && !it->second.lost.contains(task.id)) return {};
  }
  if (!state(node))
    return fail(ErrorCode::Unavailable,
                "no agent of " + node.str() + " is there; " + lastPoll(node));
  TRY(fence, fenceOf(node));
  task.fence = std::move(fence);
  // An agent has no other measure than the time that it is given.
  task.deadline = limitHere(clock_, task.deadline, kLongestTask);
  return it->second.add(std::move(task));
}

Result<wire::Fence> Gateway::fenceOf(const NodeName& node) {
  if (ledger_.empty()) {
    (void)store_.exchangeValue(std::string(kLedgerKey), std::nullopt,
                               io::randomToken(12));  // the first one names it
    TRY(named, store_.getValue(std::string(kLedgerKey)));
    ledger_ = named.value_or("");
  }
  return wire::Fence{ledger_, store_.fenceOf(lifecycle::Subject(node))};
}

std::optional<wire::AgentTaskReport> Gateway::report(const NodeName& node,
                                                     const std::string& task_id) const {
  auto it = records_.find(node);
  if (it == records_.end()) return std::nullopt;
  if (it->second.isWaiting(task_id)) {
    wire::AgentTaskReport queued;
    queued.id = task_id;
    queued.text = "waits for the agent's next poll";
    return queued;
  }
  const auto* known = it->second.report(task_id);
  return known ? std::optional(*known) : std::nullopt;
}

void Gateway::abandon(const NodeName& node, const std::string& task_id) {
  if (const auto it = records_.find(node); it != records_.end()) it->second.abandon(task_id);
}

Task<std::optional<wire::AgentTaskReport>> Gateway::reportWithin(NodeName node, std::string task_id,
                                                                 std::chrono::milliseconds limit) {
  NodeRecord& record = records_[node];
  const auto until = clock_.steady() + limit;
  while (true) {
    const std::uint64_t seen = record.changed.version();
    auto now = report(node, task_id);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.steady());
    if ((now && wire::isFinished(now->phase)) || left <= std::chrono::milliseconds(0))
      co_return now;
    co_await record.changed.waitFor(clock_, seen, left);
  }
}

Async<wire::AgentTaskReport> Gateway::runTask(NodeName node, wire::AgentTask task) {
  const auto until = clock_.steady() + limitHere(clock_, task.deadline, kLongestTask) +
                     limitHere(clock_, kDeadlineGrace);
  if (!state(node)) {
    auto there = co_await waitFor(
        node, std::nullopt, {},
        limitHere(clock_, std::min<std::chrono::seconds>(kFirstCallWait, task.deadline),
                  kLongestTask));
    if (!there) co_return fail(ErrorCode::Unavailable, there.error().str());
  }
  std::string id = task.id;
  CO_TRY_OK(submit(node, std::move(task)));
  co_return co_await awaitEnd(node, id, until);
}

Async<wire::AgentTaskReport> Gateway::awaitEnd(NodeName node, std::string id,
                                               std::chrono::steady_clock::time_point limit) {
  NodeRecord& record = records_[node];
  while (true) {
    std::uint64_t seen = record.changed.version();
    auto now = report(node, id);
    if (now && now->phase == wire::TaskPhase::Done) co_return *now;
    if (now && now->phase == wire::TaskPhase::Failed) {
      co_return fail(now->failure().within("task " + id + " on " + node.str()));
    }
    if (!state(node))
      co_return fail(ErrorCode::Unavailable,
                     node.str() + " stopped polling while task " + id + " ran; " + lastPoll(node));
    auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - clock_.steady());
    if (left <= std::chrono::milliseconds(0)) {
      co_return fail(ErrorCode::Timeout,
                     fmt::format("task {} on {} did not end in time; its last report: {}", id,
                                 node.str(), now && !now->text.empty() ? now->text : "none"));
    }
    co_await record.changed.waitFor(clock_, seen,
                                    std::min<std::chrono::milliseconds>(left, kStateCheckInterval));
  }
}

}  // namespace

std::unique_ptr<GatewayServer> makeGatewayServer(const inventory::Cluster& cluster,
                                                 const signer::Authority& ca,
                                                 lifecycle::Store& store, Clock& clock,
                                                 const NetworkEvidence& evidence,
                                                 std::string controllers,
                                                 HealthRulesFor health_rules) {
  return std::make_unique<Gateway>(cluster, ca, store, clock, evidence, std::move(controllers),
                                   std::move(health_rules));
}

}  // namespace muster::gateway
