// SPDX-License-Identifier: Apache-2.0
// FakeAgentGateway: agents in memory. A test says who is there and how each kind of task ends;
// every submission is kept.
//
//   FakeAgentGateway agents;
//   agents.boot(NodeName("gpu001"), Mode::Disk, "boot-1");
//   agents.answer(TaskKind::Probe, [](const NodeName&, const AgentTask&) -> Result<std::string> {
//   return R"({"kernel":"6.1"})"; }); agents.hold(TaskKind::WriteImage);      // stays Running
//   until agents.finish(id, …) or agents.failTask(id, …)
#pragma once

#include "gateway/agent_gateway.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace muster::test {

class FakeAgentGateway final : public gateway::AgentGateway {
 public:
  /// Answers the result as JSON text, or the task's failure.
  using Answer = std::function<Result<std::string>(const NodeName&, const wire::AgentTask&)>;

  /// The node's agent is there from now on. A new boot_id forgets nothing of its tasks.
  gateway::AgentState& boot(const NodeName& node, wire::Mode mode, std::string boot_id = "boot-1") {
    auto& state = states_[node];
    state.node = node;
    state.mode = mode;
    state.boot_id = std::move(boot_id);
    return state;
  }
  void setState(gateway::AgentState state) { states_[state.node] = std::move(state); }
  /// The agent has gone silent.
  void silence(const NodeName& node) { states_.erase(node); }
  void answer(wire::TaskKind kind, Answer how) { answers_[kind] = std::move(how); }
  void answer(wire::TaskKind kind, std::string result) {
    answers_[kind] = [result](const NodeName&, const wire::AgentTask&) -> Result<std::string> {
      return result;
    };
  }
  void hold(wire::TaskKind kind) { held_.insert(kind); }
  void finish(const std::string& task_id, std::string result) {
    end(task_id, wire::TaskPhase::Done, {}, std::move(result));
  }
  void failTask(const std::string& task_id, std::string text, ErrorCode code = ErrorCode::Internal,
                const std::vector<wire::TaskReason>& reasons = {}) {
    end(task_id, wire::TaskPhase::Failed, std::move(text), {}, code);
    for (auto& [key, report] : reports_)
      if (key.second == task_id) report.reasons = reasons;
  }
  void progress(const std::string& task_id, double fraction, std::string text,
                const std::vector<wire::TaskReason>& reasons = {}) {
    for (auto& [key, report] : reports_) {
      if (key.second != task_id) continue;
      report.fraction = fraction;
      report.text = text;
      report.reasons = reasons;
    }
  }
  /// Called at the start of waitFor; lets a test boot the node at that moment.
  std::function<void(const NodeName&)> on_wait;

  /// Every first submission of a task id, in order.
  const std::vector<std::pair<NodeName, wire::AgentTask>>& submitted() const { return submitted_; }
  std::vector<wire::AgentTask> submitted(const NodeName& node, wire::TaskKind kind) const {
    std::vector<wire::AgentTask> found;
    for (const auto& [who, task] : submitted_) {
      if (who == node && task.kind == kind) found.push_back(task);
    }
    return found;
  }
  /// submit calls in all, repeated ids included.
  int submit_calls = 0;
  std::vector<std::pair<NodeName, std::string>> abandoned;  ///< tasks that nobody wanted any more

  std::optional<gateway::AgentState> state(const NodeName& node) const override {
    auto it = states_.find(node);
    if (it == states_.end()) return std::nullopt;
    return it->second;
  }

  /// Does not wait: after on_wait the agent is there, or it is Timeout.
  Async<gateway::AgentState> waitFor(NodeName node, std::optional<wire::Mode> mode,
                                     std::string not_boot_id, std::chrono::seconds) override {
    if (on_wait) on_wait(node);
    auto it = states_.find(node);
    bool fits = it != states_.end() && (!mode || it->second.mode == *mode) &&
                (not_boot_id.empty() || it->second.boot_id != not_boot_id);
    if (!fits)
      co_return fail(ErrorCode::Timeout, "no agent of " + node.str() + " in the wanted mode");
    co_return it->second;
  }

  Result<void> submit(const NodeName& node, wire::AgentTask task) override {
    ++submit_calls;
    auto key = std::pair(node, task.id);
    if (reports_.contains(key)) return {};
    if (!states_.contains(node)) return fail(ErrorCode::Unavailable, "no agent of " + node.str());
    submitted_.emplace_back(node, task);
    auto& report = reports_[key];
    report.id = task.id;
    report.phase = wire::TaskPhase::Running;
    if (held_.contains(task.kind)) return {};
    auto how = answers_.find(task.kind);
    if (how == answers_.end()) {
      failTask(task.id,
               "the fake agent has no answer for " + std::to_string(static_cast<int>(task.kind)));
      return {};
    }
    auto result = how->second(node, task);
    if (result && task.kind == wire::TaskKind::Inspect) {  // told together with the task's end
      if (auto hardware = wire::parseHardware(*result)) states_[node].hardware = *hardware;
    }
    if (result) {
      finish(task.id, std::move(*result));
    } else {
      failTask(task.id, result.error().str(), result.error().code());
    }
    return {};
  }

  std::optional<wire::AgentTaskReport> report(const NodeName& node,
                                              const std::string& task_id) const override {
    auto it = reports_.find(std::pair(node, task_id));
    if (it == reports_.end()) return std::nullopt;
    return it->second;
  }

  /// As an agent that ends the task and says so.
  void abandon(const NodeName& node, const std::string& task_id) override {
    abandoned.emplace_back(node, task_id);
    const auto found = reports_.find(std::pair(node, task_id));
    if (found != reports_.end() && !wire::isFinished(found->second.phase))
      failTask(task_id, "it was ended", ErrorCode::Unavailable);
  }

  /// Does not wait.
  Task<std::optional<wire::AgentTaskReport>> reportWithin(NodeName node, std::string task_id,
                                                          std::chrono::milliseconds) override {
    co_return report(node, task_id);
  }

  /// Waits for `finish` or `failTask` when the kind is held.
  Async<wire::AgentTaskReport> runTask(NodeName node, wire::AgentTask task) override {
    std::string id = task.id;
    auto submitted = submit(node, std::move(task));
    if (!submitted) co_return fail(submitted.error());
    auto executor = co_await asio::this_coro::executor;
    while (reports_[{node, id}].phase == wire::TaskPhase::Running) {
      auto bell = std::make_shared<asio::steady_timer>(executor, std::chrono::hours(1));
      bells_.push_back(bell);
      boost::system::error_code ignored;
      co_await bell->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    auto report = reports_[{node, id}];
    if (report.phase == wire::TaskPhase::Failed) co_return fail(report.failure());
    co_return report;
  }

 private:
  void end(const std::string& task_id, wire::TaskPhase phase, std::string text, std::string result,
           ErrorCode code = ErrorCode::Internal) {
    for (auto& [key, report] : reports_) {
      if (key.second != task_id) continue;
      report.phase = phase;
      report.fraction = 1;
      report.text = text;
      report.result = result;
      report.code = code;
    }
    for (const auto& kept : std::exchange(bells_, {}))
      if (const auto bell = kept.lock()) bell->cancel();
  }

  std::map<NodeName, gateway::AgentState> states_;
  std::map<std::pair<NodeName, std::string>, wire::AgentTaskReport> reports_;
  std::vector<std::pair<NodeName, wire::AgentTask>> submitted_;
  std::map<wire::TaskKind, Answer> answers_;
  std::set<wire::TaskKind> held_;
  /// Of who waits: a loop that ends takes its timers along.
  std::vector<std::weak_ptr<asio::steady_timer>> bells_;
};

}  // namespace muster::test
