// SPDX-License-Identifier: Apache-2.0
#include "base/io/daemon_unit.h"

#include "base/io/files.h"
#include "base/io/json_lines.h"
#include "base/io/peer_credentials.h"
#include "base/io/unix_client.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/log.h"

#include <fmt/format.h>

#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>

namespace muster::io {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::size_t kMaxAnswerBytes = 64u << 10;
/// The unit's program starts, looks at the files and ends a daemon that is still there.
constexpr std::chrono::seconds kAnswerLimit{15};
constexpr std::chrono::seconds kSendLimit{5};

Result<Fd> dial(const DaemonUnit& unit) {
  auto dialed = dialUnixSocket(unit.socket);
  if (!dialed && dialed.error().has(DialFailure::NobodyListens))
    return fail(std::move(dialed).error().within(fmt::format(
        "nobody listens for {0}; as root: systemctl enable --now {0}.socket", unit.name)));
  if (!dialed) return fail(std::move(dialed).error());
  TRY(peer, peerCredentials(dialed->get()));
  if (peer.uid != unit.owner)
    return fail(ErrorCode::Denied,
                fmt::format("{} belongs to a program of the user with uid {}, and is not believed",
                            unit.socket.string(), peer.uid));
  return dialed;
}

/// An answer; what is said in between of a daemon that ended comes to `ended`.
Result<json> answerOn(LineReader& lines, const DaemonUnit& unit, std::string* ended) {
  const auto until = steady_clock::now() + kAnswerLimit;
  while (true) {
    auto line = lines.next(until);
    if (!line && line.error().code() == ErrorCode::Unavailable)
      return fail(ErrorCode::Unavailable,
                  fmt::format("{} ended without an answer; why: {}", unit.name, unit.journal()));
    if (!line) return fail(std::move(line).error().within("asking " + unit.name));
    TRY(answer, parseJson(*line, kServerJson));
    if (const auto code = muster::textOf(answer, "error"); !code.empty())
      return fail(Error(errorCodeOf(code), muster::textOf(answer, "text")).within(unit.name));
    if (answer.is_object() && answer.contains("ended")) {
      if (ended) *ended = muster::textOf(answer, "ended");
      continue;
    }
    return answer;
  }
}

class UnitChild final : public Child {
 public:
  UnitChild(DaemonUnit unit, Fd line, LineReader lines, pid_t pid)
      : unit_(std::move(unit)), line_(std::move(line)), lines_(std::move(lines)), pid_(pid) {}
  ~UnitChild() override { terminate(std::chrono::seconds(2)); }

  pid_t pid() const override { return pid_; }
  bool running() override {
    while (!ended_) {
      const auto line = lines_.next(steady_clock::now());
      if (!line && line.error().code() == ErrorCode::Timeout) break;
      ended_ = !line || isEnd(*line);
    }
    return !ended_;
  }
  /// The unit ends what runs for a connection when the connection ends, so this is all that it
  /// takes; who asks waits for it, because the next one wants the ports.
  void terminate(std::chrono::milliseconds grace) override {
    if (ended_) return;
    let_go_ = true;
    ::shutdown(line_.get(), SHUT_WR);
    const auto until = steady_clock::now() + grace + std::chrono::seconds(1);
    while (!ended_) {
      const auto line = lines_.next(until);
      ended_ = !line || isEnd(*line);
      if (!line && line.error().code() == ErrorCode::Timeout)
        logWarning(unit_.name, "it did not say in time that it has ended");
    }
    line_ = Fd();
  }
  void signal(int number) override {
    if (number != SIGHUP || ended_) return;
    if (const auto sent = sendJsonLine(line_.get(), {{"signal", "hup"}}, kSendLimit); !sent)
      logWarning(unit_.name, "it was not told to read its files again: {}", sent.error().str());
  }

 private:
  bool isEnd(const std::string& line) {
    const auto said = jsonOrNone(line, kServerJson);
    if (!said.is_object() || !said.contains("ended")) {
      if (const auto text = muster::textOf(said, "text"); !text.empty())
        logWarning(unit_.name, "{}", text);
      return false;
    }
    logText(let_go_ ? LogLevel::Info : LogLevel::Warning, unit_.name,
            muster::textOf(said, "ended"));
    return true;
  }

  DaemonUnit unit_;
  Fd line_;
  LineReader lines_;
  pid_t pid_;
  bool ended_ = false;
  bool let_go_ = false;  ///< its end is wanted
};

}  // namespace

Result<json> askDaemonUnit(const DaemonUnit& unit, const json& request) {
  TRY(line, dial(unit));
  TRY_OK(sendJsonLine(line.get(), request, kSendLimit));
  LineReader lines(line.get(), kMaxAnswerBytes);
  return answerOn(lines, unit, nullptr);
}

Result<std::unique_ptr<Child>> startInUnit(const DaemonUnit& unit, const DaemonFiles& files) {
  TRY(line, dial(unit));
  TRY_OK(sendJsonLine(line.get(), {{"start", files}}, kSendLimit));
  LineReader lines(line.get(), kMaxAnswerBytes);
  std::string ended;
  TRY(answer, answerOn(lines, unit, &ended));
  const auto pid = answer.is_object() ? answer.value("pid", json()) : json();
  if (!pid.is_number_integer())
    return fail(ErrorCode::Corrupt, unit.name + " did not say which process it has started");
  return std::make_unique<UnitChild>(unit, std::move(line), std::move(lines), pid.get<pid_t>());
}

bool mayBindLowPorts() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  return ::syscall(SYS_capget, &header, data.data()) == 0 &&
         (data[0].effective & (std::uint32_t{1} << CAP_NET_BIND_SERVICE)) != 0;
}

}  // namespace muster::io
