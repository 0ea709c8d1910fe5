// What stands beside a BMC's Redfish: IPMI of the same BMC, and whoever switches the machine's outlets.
#include "bmc/forwarding_bmc.h"
#include "bmc/readiness.h"
#include "bmc/ipmi/ipmi_bmc.h"
#include "bmc/ipmi/pdu.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

bool isNotOffered(const Error& error) { return error.code() == ErrorCode::NotFound; }
bool isSilent(const Error& error) { return error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::Timeout; }

class WithIpmi final : public ForwardingBmc {
 public:
  WithIpmi(std::unique_ptr<Bmc> redfish, Bmc& ipmi) : ForwardingBmc(*redfish), redfish_(std::move(redfish)), ipmi_(ipmi) {}

  Async<void> power(PowerAction action) override {
    auto first = inner_.power(action);
    auto done = co_await std::move(first);
    if (done || action != PowerAction::On || !(isNotOffered(done.error()) || isSilent(done.error()))) co_return done;
    auto then = ipmi_.power(action);
    co_return both(std::move(done.error()), co_await std::move(then));
  }
  Async<void> interrupt() override {
    auto first = inner_.interrupt();
    auto done = co_await std::move(first);
    if (done || !isNotOffered(done.error())) co_return done;
    auto then = ipmi_.interrupt();
    co_return both(std::move(done.error()), co_await std::move(then));
  }
  Async<void> bootOnce(BootTarget target) override {
    auto once = boot({target, false, {}});
    co_return co_await std::move(once);
  }
  Async<void> boot(BootOverride what) override {
    auto first = inner_.boot(what);
    auto done = co_await std::move(first);
    if (done || !(isNotOffered(done.error()) || isSilent(done.error()))) co_return done;
    auto then = ipmi_.boot(std::move(what));
    co_return both(std::move(done.error()), co_await std::move(then));
  }
  Async<std::vector<LogEntry>> eventLog(std::size_t limit) override {
    auto read = readEither<std::vector<LogEntry>>([limit](Bmc& bmc) { return bmc.eventLog(limit); });
    co_return co_await std::move(read);
  }
  Async<std::vector<SensorReading>> sensors() override {
    auto read = readEither<std::vector<SensorReading>>([](Bmc& bmc) { return bmc.sensors(); });
    co_return co_await std::move(read);
  }

 private:
  template <class T>
  Async<T> readEither(std::function<Async<T>(Bmc&)> read) {
    auto first = read(inner_);
    auto seen = co_await std::move(first);
    if (seen || !(isNotOffered(seen.error()) || isSilent(seen.error()))) co_return seen;
    auto then = read(ipmi_);
    auto other = co_await std::move(then);
    co_return other ? std::move(other) : std::move(seen);
  }

  /// Redfish's own error stays the one that is told, with what IPMI said.
  static Result<void> both(Error redfish, Result<void> ipmi) {
    if (ipmi) return ipmi;
    return fail(redfish.code(), fmt::format("{}; by IPMI: {}", redfish.text(), ipmi.error().text()));
  }

  std::unique_ptr<Bmc> redfish_;
  Bmc& ipmi_;
};

constexpr auto kHookLimit = 120s;      ///< of one run of the command
constexpr auto kGoneLimit = 60s;       ///< a BMC without power is silent by then
constexpr auto kPresencePoll = 2s;
constexpr auto kBackLimit = 10min;     ///< until it answers again
constexpr auto kOnPause = 10s;
constexpr int kOnTries = 3;

class WithPdu final : public ForwardingBmc {
 public:
  WithPdu(std::unique_ptr<Bmc> bmc, Outlets outlets, io::ProcessRunner& processes, Clock& clock)
      : ForwardingBmc(*bmc), bmc_(std::move(bmc)), outlets_(std::move(outlets)), processes_(processes), clock_(clock) {}

  Async<void> acCycle() override {
    auto first = inner_.acCycle();
    auto done = co_await std::move(first);
    if (done || !isNotOffered(done.error())) co_return done;
    auto cut = run(outlets_.off);
    if (auto off = co_await std::move(cut); !off) {  // it may have switched before it failed, or before nobody waited any more
      auto undo = on();
      const auto back = co_await std::move(undo);
      co_return fail(off.error().code(), off.error().text() + (back ? "; the outlets were switched on again" : "; " + back.error().text()));
    }
    auto wait = waitUntilGone();
    auto gone = co_await std::move(wait);
    if (gone) {
      auto pause = clock_.sleep(outlets_.time_off);
      co_await std::move(pause);
    }
    auto give_back = on();
    CO_TRY_OK(co_await std::move(give_back));
    if (!gone) co_return fail(std::move(gone.error()));
    auto back = readsUntilBack(inner_, clock_, {kBackLimit, kPresencePoll, true});
    co_return co_await std::move(back);
  }

  Async<void> restorePower(WallTime cut_at) override {
    if (restored_ == cut_at) co_return Result<void>();
    const auto since = clock_.now() - cut_at;
    if (since < outlets_.time_off) {
      auto pause = clock_.sleep(std::chrono::duration_cast<std::chrono::milliseconds>(outlets_.time_off - since));
      co_await std::move(pause);
    }
    auto give_back = on();
    CO_TRY_OK(co_await std::move(give_back));
    restored_ = cut_at;
    co_return Result<void>();
  }

 private:
  Async<void> run(std::vector<std::string> words) {
    io::Command command;
    command.program = words.front();
    command.args.assign(words.begin() + 1, words.end());
    command.timeout = kHookLimit;
    auto work = processes_.run(std::move(command));
    CO_TRY(ended, co_await std::move(work));
    if (ended.code == 0) co_return Result<void>();
    auto said = ended.err.empty() ? ended.out : ended.err;
    while (!said.empty() && said.back() == '\n') said.pop_back();
    co_return fail(ErrorCode::Unavailable, fmt::format("the PDU's command `{}` ended with {}: {}", fmt::join(words, " "), ended.code, said.substr(said.rfind('\n') + 1)));
  }

  Async<void> on() {
    for (int tried = 1;; ++tried) {
      auto work = run(outlets_.on);
      auto done = co_await std::move(work);
      if (done || tried == kOnTries) co_return done ? done : fail(done.error().code(), done.error().text() + "; the machine's power may still be off");
      auto pause = clock_.sleep(kOnPause);
      co_await std::move(pause);
    }
  }

  /// The command's exit code proves nothing: it may have switched the outlets of another machine.
  Async<void> waitUntilGone() {
    const auto until = clock_.steady() + kGoneLimit;
    while (true) {
      auto look = inner_.system();
      auto seen = co_await std::move(look);
      if (!seen && isSilent(seen.error())) co_return Result<void>();
      if (clock_.steady() >= until)
        co_return fail(ErrorCode::Conflict, fmt::format("the PDU's command said that the outlets are off, but {} still answers {} s later: it switched others, or not all of this machine's. They were "
                                                        "switched on again; look which machine lost its power", address(), kGoneLimit.count()));
      auto pause = clock_.sleep(kPresencePoll);
      co_await std::move(pause);
    }
  }

  std::unique_ptr<Bmc> bmc_;
  Outlets outlets_;
  io::ProcessRunner& processes_;
  Clock& clock_;
  WallTime restored_{};
};

}  // namespace

std::unique_ptr<Bmc> withIpmi(std::unique_ptr<Bmc> redfish, Bmc& ipmi) { return std::make_unique<WithIpmi>(std::move(redfish), ipmi); }

std::unique_ptr<Bmc> withPdu(std::unique_ptr<Bmc> bmc, Outlets outlets, io::ProcessRunner& processes, Clock& clock) {
  return std::make_unique<WithPdu>(std::move(bmc), std::move(outlets), processes, clock);
}

std::vector<std::string> wordsFor(const inventory::Node& node, std::vector<std::string> words) {
  const std::pair<std::string, std::string> known[] = {{"{node}", node.name.str()}, {"{rack}", node.rack}, {"{unit}", std::to_string(node.unit)}};
  for (auto& word : words)
    for (const auto& [name, value] : known)
      for (auto at = word.find(name); at != std::string::npos; at = word.find(name, at + value.size())) word.replace(at, name.size(), value);
  return words;
}

}  // namespace muster::bmc
