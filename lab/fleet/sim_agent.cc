// SPDX-License-Identifier: Apache-2.0
#include "lab/fleet/sim_agent.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"

#include <nlohmann/json.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>

#include <algorithm>

namespace muster::lab::fleet {

namespace {

using nlohmann::json;
using wire::AgentTask;
using wire::AgentTaskReport;
using wire::Mode;
using wire::TaskKind;
using wire::TaskPhase;

constexpr std::chrono::milliseconds kBackOff{1'000};
constexpr std::chrono::seconds kPollSlack{15};
constexpr std::chrono::seconds kFirstAnswer{15};
constexpr std::chrono::milliseconds kTellTakenUp{100};

io::HttpRequest postTo(const io::Url& controller, const std::string& path, std::string body) {
  io::HttpRequest request;
  request.method = "POST";
  request.url = controller;
  request.url.target = path;
  request.headers["Content-Type"] = "application/json";
  request.body = std::move(body);
  request.timeout = wire::kPollWait + kPollSlack;
  return request;
}

Result<std::string> bodyOf(Result<io::HttpResponse> response) {
  if (!response) return fail(std::move(response).error());
  if (response->status == 200) return std::move(response->body);
  return fail(ErrorCode::Unavailable,
              fmt::format("the controller answered {}: {}", response->status, response->body));
}

/// A version that a glob accepts.
std::string fitting(std::string glob) {
  std::replace(glob.begin(), glob.end(), '*', '0');
  std::replace(glob.begin(), glob.end(), '?', '0');
  return glob;
}

}  // namespace

Task<void> SimAgent::run() {
  auto self = shared_from_this();
  ended_ = std::make_unique<asio::steady_timer>(co_await asio::this_coro::executor);
  while (!stopped_) {
    auto done = co_await exchange();
    if (done || stopped_) continue;
    logDebug("fleet", "{}: {}", boot_.mac, done.error().str());
    said_all_ = false;
    delta_.forget();
    controllers_.failed(done.error().code() == ErrorCode::Timeout);
    co_await clock_.sleep(kBackOff);
  }
}

Async<void> SimAgent::ensureIdentity() {
  if (client_) co_return Result<void>();
  if (boot_.mode == Mode::Disk) {
    identity_ = disk_.identity;
    ca_pem_ = disk_.ca_pem;
  } else {
    CO_TRY_OK(co_await enroll());
  }
  io::TlsTrust trust;
  trust.ca_pem = ca_pem_;
  trust.identity = identity_;
  client_ = io::makeHttpClient(trust);
  co_return Result<void>();
}

Async<void> SimAgent::enroll() {
  CO_TRY(made, io::makeKeyAndRequest(boot_.mac));
  io::TlsTrust trust;
  trust.pinned_fingerprint = boot_.ca_fingerprint;
  trust.pin_is_root = true;
  auto first = io::makeHttpClient(trust);
  CO_TRY(body, bodyOf(co_await first->send(postTo(
                   controllers_.present(), "/agent/v1/enrol",
                   wire::toJson(wire::EnrollRequest{boot_.enrollment, made.csr_pem, boot_.mac})))));
  CO_TRY(answer, wire::parseEnrollResponse(body));
  identity_ = {made.key_pem, answer.certificate_pem};
  ca_pem_ = answer.ca_pem;
  co_return Result<void>();
}

Async<io::TlsIdentity> SimAgent::certifyInstalled() {
  CO_TRY(made, io::makeKeyAndRequest(boot_.mac));
  CO_TRY(body, bodyOf(co_await client_->send(
                   postTo(controllers_.present(), "/agent/v1/certificate",
                          wire::toJson(wire::EnrollRequest{{}, made.csr_pem, {}})))));
  CO_TRY(answer, wire::parseEnrollResponse(body));
  co_return io::TlsIdentity{made.key_pem, answer.certificate_pem};
}

bool SimAgent::busy() const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const Job& job) { return !isFinished(job.report.phase); });
}

SimAgent::Job* SimAgent::find(const std::string& id) {
  auto it = std::find_if(jobs_.begin(), jobs_.end(),
                         [&id](const Job& job) { return job.report.id == id; });
  return it == jobs_.end() ? nullptr : &*it;
}

wire::PollRequest SimAgent::describe() {
  wire::PollRequest request;
  request.mode = boot_.mode;
  request.boot_id = boot_.boot_id;
  request.agent_version = "fleet";
  if (boot_.mode == Mode::Disk) request.image_digest = disk_.image_digest;
  if (boot_.mode == Mode::Disk) request.probes = disk_.probes;
  request.session = isToProve() ? std::string("none")
                                : session_;  // as muster-agent: who is told so answers at once
  request.sequence = ++sequence_;
  request.fresh = true;
  request.wants_answer = false;
  if (!said_all_) request.hardware = wire::toJson(hardware_);
  for (const auto& job : jobs_) {
    request.reports.push_back(job.report);
    if (said_all_ && job.acknowledged) request.reports.back().result.clear();
  }
  return request;
}

Async<void> SimAgent::exchange() {
  CO_TRY_OK(co_await ensureIdentity());
  const auto request = describe();
  auto message =
      postTo(controllers_.present(), "/agent/v1/poll", wire::toJson(delta_.deltaOf(request)));
  if (isToProve()) message.timeout = kFirstAnswer;
  CO_TRY(body, bodyOf(co_await client_->send(std::move(message))));
  if (stopped_) co_return Result<void>();
  CO_TRY(response, wire::parsePollResponse(body));
  delta_.acknowledged(request, response);
  const bool same = response.session == session_ && !isToProve();
  controllers_.answered();
  said_all_ = same;
  session_ = response.session;
  for (auto& job : jobs_)
    job.acknowledged =
        same && std::any_of(request.reports.begin(), request.reports.end(),
                            [&job](const AgentTaskReport& said) {
                              return said.id == job.report.id && isFinished(said.phase);
                            });
  const bool started = !response.start.empty();
  co_await take(std::move(response));
  if (!busy()) co_return Result<void>();
  ended_->expires_after(
      started ? kTellTakenUp : std::chrono::milliseconds(wire::kPollWhileBusy));  // as muster-agent
  boost::system::error_code ignored;
  co_await ended_->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  co_return Result<void>();
}

Task<void> SimAgent::take(wire::PollResponse response) {
  for (const auto& id : response.forget)
    std::erase_if(jobs_, [&id](const Job& job) { return job.report.id == id; });
  auto executor = co_await asio::this_coro::executor;
  for (auto& task : response.start) {
    if (find(task.id)) continue;
    Job job;
    job.report.id = task.id;
    job.report.phase = TaskPhase::Running;
    jobs_.push_back(std::move(job));
    if (tell_) tell_(task, TaskPhase::Running);
    asio::co_spawn(executor, carryOut(shared_from_this(), std::move(task)), asio::detached);
  }
}

Task<void> SimAgent::carryOut(std::shared_ptr<SimAgent> self, AgentTask task) {
  if (const auto takes = self->conditions_.task.draw(self->random_); takes.count() > 0) {
    co_await self->clock_.sleep(takes);
  }
  auto result = co_await self->resultOf(task);
  Job* job = self->find(task.id);
  if (!job || self->stopped_) co_return;
  job->report.phase = result ? TaskPhase::Done : TaskPhase::Failed;
  if (self->tell_) self->tell_(task, job->report.phase);
  if (result) {
    job->report.fraction = 1;
    job->report.result = std::move(*result);
  } else {
    job->report.code = result.error().code();
    job->report.text = result.error().str();
  }
  self->ended_->cancel();
}

Async<std::string> SimAgent::resultOf(AgentTask task) {
  if (happens(conditions_.task_fails, random_))
    co_return fail(ErrorCode::Unavailable, "the simulated task failed, as it does now and then");
  auto params = jsonOrNone(task.params, kOrderJson);
  json result = json::object();
  switch (task.kind) {
    case TaskKind::Inspect:
      co_return wire::toJson(hardware_);
    case TaskKind::WriteImage: {
      auto written = co_await writeImage(std::move(params));
      co_return written;
    }
    case TaskKind::InstallDriver:
      for (auto& [probe, glob] : params["verify"].items())
        result[probe] = disk_.probes[probe] = fitting(glob.get<std::string>());
      break;
    case TaskKind::Probe:
      for (auto& probe : params["probes"]) {
        const auto known = disk_.probes.find(probe.get<std::string>());
        result[probe.get<std::string>()] = known == disk_.probes.end() ? "absent" : known->second;
      }
      break;
    case TaskKind::RunChecks: {
      std::vector<wire::CheckResult> checks;
      for (auto& check : params["checks"])
        checks.push_back({check["id"], wire::CheckStatus::Pass, "as expected", {}, "{}", 0});
      co_return wire::toJson(checks);
    }
    default:
      break;
  }
  co_return jsonText(result);
}

/// As the writer does: nothing is on the disk before the node has a certificate for what it will
/// be.
Async<std::string> SimAgent::writeImage(json params) {
  CO_TRY(identity, co_await certifyInstalled());
  disk_ = {
      params["digest"], params["agent"]["url"], std::move(identity), params["agent"]["ca_pem"], {}};
  co_return jsonText(json{
      {"digest", disk_.image_digest}, {"seconds", 0}, {"bytes_written", 0}, {"bytes_skipped", 0}});
}

}  // namespace muster::lab::fleet
