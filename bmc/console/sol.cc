// SPDX-License-Identifier: Apache-2.0
// IPMI serial over LAN. ipmitool speaks RMCP+ and holds the session; muster talks to it over pipes.
// A BMC has one SOL session: a second one is refused by the BMC ("already active"), and muster
// never ends another's unless it is told to.
#include "base/async/deadline.h"
#include "bmc/console/source.h"
#include "bmc/ipmi/ipmitool_errors.h"

#include <fmt/format.h>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kOpenLimit = 40s;  ///< ipmitool's own retries end before
constexpr auto kEvictLimit = 30s;
constexpr char kEscape =
    0x1e;  ///< ipmitool's escape, which no keyboard sends; the usual '~' belongs to the machine
constexpr std::size_t kMaxGreetingBytes = 16u << 10;
constexpr std::string_view kReady = "[SOL Session operational.";
constexpr std::string_view kNoTerminal =
    "tcgetattr: Inappropriate ioctl for device\n";  ///< its remark on pipes, before or after that

constexpr ToolError kRefusals[] = {
    {"already active", ErrorCode::Conflict,
     "another session has the serial console; `muster console NODE --force` ends it"},
    {"already de-activated", ErrorCode::Unavailable, "the session ended as it began"},
    {"insufficient privilege", ErrorCode::Denied, "the account may not use the serial console",
     true},
    {"SOL payload disabled", ErrorCode::Denied, "serial over LAN is switched off in the BMC"},
    {"SOL is not enabled", ErrorCode::Denied, "serial over LAN is switched off in the BMC"},
    {"does not support IPMI v2", ErrorCode::Unavailable, "the BMC does not speak IPMI 2.0"},
};

/// What is typed goes to the machine whatever it is: only the escape, which nobody types, is kept
/// from ipmitool.
class SolLine final : public io::Dialogue {
 public:
  SolLine(std::unique_ptr<io::Dialogue> tool, std::string first)
      : tool_(std::move(tool)), first_(std::move(first)) {}
  Async<std::string> read() override {
    while (true) {
      auto piece = std::exchange(first_, {});
      if (piece.empty()) {
        CO_TRY(next, co_await tool_->read());
        if (next.empty()) co_return next;
        piece = std::move(next);
      }
      if (std::exchange(at_begin_, false) && piece.starts_with(kNoTerminal))
        piece.erase(0, kNoTerminal.size());
      if (!piece.empty()) co_return piece;
    }
  }
  Async<void> write(std::string bytes) override {
    std::erase(bytes, kEscape);
    co_return co_await tool_->write(std::move(bytes));
  }
  void hangUp() override {
    tool_->hangUp();
  }  // at the end of its input ipmitool gives the session back to the BMC

 private:
  std::unique_ptr<io::Dialogue> tool_;
  std::string first_;  ///< what came together with the greeting
  bool at_begin_ = true;
};

class SolConsole final : public ConsoleSource {
 public:
  SolConsole(SolOptions options, Clock& clock) : options_(std::move(options)), clock_(clock) {}

  std::string name() const override { return fmt::format("serial over LAN of {}", options_.host); }

  Async<std::unique_ptr<io::Dialogue>> open() override {
    CO_TRY(password, options_.account.password());
    CO_TRY_OK(options_.account.may_try(password));
    auto executor = co_await asio::this_coro::executor;
    CO_TRY(tool, io::startDialogue(executor, command("activate", password)));
    auto wait = greeting(*tool, password);
    CO_TRY(first, co_await withDeadline<std::string>(clock_, kOpenLimit, name(), std::move(wait)));
    co_return std::unique_ptr<io::Dialogue>(
        std::make_unique<SolLine>(std::move(tool), std::move(first)));
  }

  Async<void> evict() override {
    CO_TRY(password, options_.account.password());
    CO_TRY_OK(options_.account.may_try(password));
    auto executor = co_await asio::this_coro::executor;
    CO_TRY(tool, io::startDialogue(executor, command("deactivate", password)));
    auto wait = drain(*tool, password);
    co_return co_await withDeadline<void>(clock_, kEvictLimit, "ending the other session",
                                          std::move(wait));
  }

 private:
  io::Command command(const char* verb, const Secret& password) const {
    // Into a pipe ipmitool would say that it is ready only together with the machine's first word.
    io::Command out{"stdbuf",
                    {"-o0", "ipmitool", "-I", "lanplus", "-v", "-e", std::string(1, kEscape), "-H",
                     options_.host, "-p", std::to_string(options_.port), "-U",
                     options_.account.username, "-E"}};
    out.args.insert(out.args.end(), options_.more_args.begin(), options_.more_args.end());
    out.args.insert(out.args.end(), {"sol", verb});
    out.env["IPMI_PASSWORD"] = password.reveal();
    return out;
  }

  Error refusal(const std::string& said, const Secret& password) const {
    if (const auto* row = refusalIn(said, kRefusals)) {
      if (row->of_password) options_.account.refused(password);
      return Error(row->code, fmt::format("{}: {}", name(), row->means));
    }
    return Error(ErrorCode::Unavailable,
                 fmt::format("{}: {}", name(), lastMessage(said, "ipmitool")));
  }

  /// Ends with what came after the greeting.
  Async<std::string> greeting(io::Dialogue& tool, Secret password) {
    std::string said;
    while (said.size() < kMaxGreetingBytes) {
      CO_TRY(piece, co_await tool.read());
      if (piece.empty()) co_return std::unexpected(refusal(said, password));
      said += piece;
      const auto ready = said.find(kReady);
      const auto end = ready == std::string::npos ? ready : said.find('\n', ready);
      if (end != std::string::npos) co_return said.substr(end + 1);
    }
    co_return fail(ErrorCode::Unavailable, name() + ": ipmitool talks without end");
  }

  Async<void> drain(io::Dialogue& tool, Secret password) {
    std::string said;
    while (said.size() < kMaxGreetingBytes) {
      CO_TRY(piece, co_await tool.read());
      if (piece.empty()) break;
      said += piece;
    }
    if (const auto* row = refusalIn(said, kRefusals); row && row->code == ErrorCode::Denied)
      co_return std::unexpected(refusal(said, password));
    co_return Result<void>();
  }

  SolOptions options_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<ConsoleSource> makeSolConsole(SolOptions options, Clock& clock) {
  return std::make_unique<SolConsole>(std::move(options), clock);
}

}  // namespace muster::bmc
