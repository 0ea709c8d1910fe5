// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/systemd.h"

#include <cctype>

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kAskLimit{10};
constexpr std::chrono::milliseconds kLookEvery{500};

}  // namespace

Async<std::string> systemctl(TaskTools tools, std::vector<std::string> words,
                             std::chrono::seconds limit) {
  co_return co_await runTool(tools, "systemctl", std::move(words), limit);
}

Task<std::string> unitState(TaskTools tools, std::string unit) {
  std::vector<std::string> words = {"show", "-p", "ActiveState", "--value", unit};
  auto out = co_await systemctl(tools, std::move(words), kAskLimit);
  if (!out) co_return std::string();
  while (!out->empty() && std::isspace(static_cast<unsigned char>(out->back()))) out->pop_back();
  co_return std::move(*out);
}

Task<std::string> lastWords(TaskTools tools, std::string unit) {
  std::vector<std::string> args = {"-u", unit, "-n", "20", "--no-pager", "-o", "cat"};
  const auto journal = co_await runTool(tools, "journalctl", std::move(args), kAskLimit);
  co_return journal ? *journal : journal.error().str();
}

Async<void> untilActive(TaskTools tools, std::string unit, std::chrono::seconds limit) {
  const auto until = tools.clock.steady() + limit;
  std::string state;
  while (tools.clock.steady() < until) {
    state = co_await unitState(tools, unit);
    if (state == "active") co_return Result<void>();
    if (state == "failed") break;
    co_await tools.clock.sleep(kLookEvery);
  }
  const auto words = co_await lastWords(tools, unit);
  co_return fail(
      state == "failed" ? ErrorCode::Internal : ErrorCode::Timeout,
      fmt::format("{} is {}; its last output: {}", unit,
                  state.empty() ? "in a state that systemd did not report" : state, words));
}

}  // namespace muster::agent
