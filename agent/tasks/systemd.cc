#include "agent/tasks/systemd.h"

#include <cctype>

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kAskLimit{10};
constexpr std::chrono::milliseconds kLookEvery{500};

}  // namespace

Async<std::string> systemctl(TaskTools tools, std::vector<std::string> words, std::chrono::seconds limit) {
  auto run = runTool(tools, "systemctl", std::move(words), limit);
  co_return co_await std::move(run);
}

Task<std::string> unitState(TaskTools tools, std::string unit) {
  std::vector<std::string> words = {"show", "-p", "ActiveState", "--value", unit};
  auto ask = systemctl(tools, std::move(words), kAskLimit);
  auto out = co_await std::move(ask);
  if (!out) co_return std::string();
  while (!out->empty() && std::isspace(static_cast<unsigned char>(out->back()))) out->pop_back();
  co_return std::move(*out);
}

Task<std::string> lastWords(TaskTools tools, std::string unit) {
  std::vector<std::string> args = {"-u", unit, "-n", "20", "--no-pager", "-o", "cat"};
  auto read = runTool(tools, "journalctl", std::move(args), kAskLimit);
  const auto journal = co_await std::move(read);
  co_return journal ? *journal : journal.error().str();
}

Async<void> untilActive(TaskTools tools, std::string unit, std::chrono::seconds limit) {
  const auto until = tools.clock.steady() + limit;
  std::string state;
  while (tools.clock.steady() < until) {
    auto ask = unitState(tools, unit);
    state = co_await std::move(ask);
    if (state == "active") co_return Result<void>();
    if (state == "failed") break;
    auto sleep = tools.clock.sleep(kLookEvery);
    co_await std::move(sleep);
  }
  auto reading = lastWords(tools, unit);
  const auto words = co_await std::move(reading);
  co_return fail(state == "failed" ? ErrorCode::Internal : ErrorCode::Timeout,
                 fmt::format("{} is {}; its last words: {}", unit, state.empty() ? "in a state that systemd does not tell" : state, words));
}

}  // namespace muster::agent
