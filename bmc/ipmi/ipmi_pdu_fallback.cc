// SPDX-License-Identifier: Apache-2.0
// What stands beside a BMC's Redfish: IPMI of the same BMC, and whoever switches the machine's
// outlets.
#include "bmc/composite_bmc.h"
#include "bmc/ipmi/ipmi_bmc.h"
#include "bmc/ipmi/pdu.h"
#include "bmc/readiness.h"
#include "inventory/model/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

bool isNotOffered(const Error& error) { return error.code() == ErrorCode::NotFound; }
bool isSilent(const Error& error) {
  return error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::Timeout;
}

class WithIpmi final : public ForwardingBmc {
 public:
  WithIpmi(std::unique_ptr<Bmc> redfish, Bmc& ipmi)
      : ForwardingBmc(*redfish), redfish_(std::move(redfish)), ipmi_(ipmi) {}

  Async<void> power(PowerAction action) override {
    auto done = co_await inner_.power(action);
    if (done || action != PowerAction::On ||
        !(isNotOffered(done.error()) || isSilent(done.error())))
      co_return done;
    co_return both(std::move(done.error()), co_await ipmi_.power(action));
  }
  Async<void> sendNmi() override {
    auto done = co_await inner_.sendNmi();
    if (done || !isNotOffered(done.error())) co_return done;
    co_return both(std::move(done.error()), co_await ipmi_.sendNmi());
  }
  Async<void> bootOnce(BootTarget target) override { co_return co_await boot({target, false, {}}); }
  Async<void> boot(BootOverride what) override {
    auto done = co_await inner_.boot(what);
    if (done || !(isNotOffered(done.error()) || isSilent(done.error()))) co_return done;
    co_return both(std::move(done.error()), co_await ipmi_.boot(std::move(what)));
  }
  Async<EventLog> eventLog(std::size_t limit) override {
    co_return co_await readEither<EventLog>([limit](Bmc& bmc) { return bmc.eventLog(limit); });
  }
  Async<std::vector<SensorReading>> sensors() override {
    co_return co_await readEither<std::vector<SensorReading>>(
        [](Bmc& bmc) { return bmc.sensors(); });
  }

 private:
  template <class T>
  Async<T> readEither(std::function<Async<T>(Bmc&)> read) {
    auto seen = co_await read(inner_);
    if (seen || !(isNotOffered(seen.error()) || isSilent(seen.error()))) co_return seen;
    auto other = co_await read(ipmi_);
    co_return other ? std::move(other) : std::move(seen);
  }

  /// Redfish's own error stays the one that is told, with what IPMI said.
  static Result<void> both(Error redfish, Result<void> ipmi) {
    if (ipmi) return ipmi;
    return fail(redfish.code(),
                fmt::format("{}; by IPMI: {}", redfish.text(), ipmi.error().text()));
  }

  std::unique_ptr<Bmc> redfish_;
  Bmc& ipmi_;
};

constexpr auto kHookLimit = 120s;  ///< of one run of the command
constexpr auto kGoneLimit = 60s;   ///< a BMC without power is silent by then
constexpr auto kPresencePoll = 2s;
constexpr auto kBackLimit = 10min;  ///< until it answers again
constexpr auto kOnPause = 10s;
constexpr int kOnTries = 3;

class WithPdu final : public ForwardingBmc {
 public:
  WithPdu(std::unique_ptr<Bmc> bmc, Outlets outlets, io::ProcessRunner& processes, Clock& clock)
      : ForwardingBmc(*bmc),
        bmc_(std::move(bmc)),
        outlets_(std::move(outlets)),
        processes_(processes),
        clock_(clock) {}

  Async<void> acCycle() override {
    auto done = co_await inner_.acCycle();
    if (done || !isNotOffered(done.error())) co_return done;
    if (auto off = co_await run(outlets_.off);
        !off) {  // it may have switched before it failed, or before nobody waited any more
      const auto back = co_await on();
      co_return fail(off.error().code(),
                     off.error().text() + (back ? "; the outlets were switched on again"
                                                : "; " + back.error().text()));
    }
    auto gone = co_await waitUntilGone();
    if (gone) {
      co_await clock_.sleep(outlets_.time_off);
    }
    CO_TRY_OK(co_await on());
    if (!gone) co_return fail(std::move(gone.error()));
    co_return co_await waitUntilReady(inner_, clock_, {kBackLimit, kPresencePoll, true});
  }

  Async<void> restorePower(WallTime cut_at) override {
    if (restored_ == cut_at) co_return Result<void>();
    const auto since = clock_.now() - cut_at;
    if (since < outlets_.time_off) {
      co_await clock_.sleep(
          std::chrono::duration_cast<std::chrono::milliseconds>(outlets_.time_off - since));
    }
    CO_TRY_OK(co_await on());
    restored_ = cut_at;
    co_return Result<void>();
  }

 private:
  Async<void> run(std::vector<std::string> words) {
    io::Command command;
    command.program = words.front();
    command.args.assign(words.begin() + 1, words.end());
    command.timeout = kHookLimit;
    CO_TRY(ended, co_await processes_.run(std::move(command)));
    if (ended.code == 0) co_return Result<void>();
    auto said = ended.err.empty() ? ended.out : ended.err;
    while (!said.empty() && said.back() == '\n') said.pop_back();
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("the PDU's command `{}` ended with {}: {}", fmt::join(words, " "),
                               ended.code, said.substr(said.rfind('\n') + 1)));
  }

  Async<void> on() {
    for (int tried = 1;; ++tried) {
      auto done = co_await run(outlets_.on);
      if (done || tried == kOnTries)
        co_return done ? done
                       : fail(done.error().code(),
                              done.error().text() + "; the machine's power may still be off");
      co_await clock_.sleep(kOnPause);
    }
  }

  /// The command's exit code proves nothing: it may have switched the outlets of another machine.
  Async<void> waitUntilGone() {
    const auto until = clock_.steady() + kGoneLimit;
    while (true) {
      auto seen = co_await inner_.system();
      if (!seen && isSilent(seen.error())) co_return Result<void>();
      if (clock_.steady() >= until)
        co_return fail(
            ErrorCode::Conflict,
            fmt::format("the PDU's command said that the outlets are off, but {} still answers {} "
                        "s later: it switched others, or not all of this machine's. They were "
                        "switched on again; look which machine lost its power",
                        address(), kGoneLimit.count()));
      co_await clock_.sleep(kPresencePoll);
    }
  }

  std::unique_ptr<Bmc> bmc_;
  Outlets outlets_;
  io::ProcessRunner& processes_;
  Clock& clock_;
  WallTime restored_{};
};

}  // namespace

std::unique_ptr<Bmc> withIpmi(std::unique_ptr<Bmc> redfish, Bmc& ipmi) {
  return std::make_unique<WithIpmi>(std::move(redfish), ipmi);
}

std::unique_ptr<Bmc> withPdu(std::unique_ptr<Bmc> bmc, Outlets outlets,
                             io::ProcessRunner& processes, Clock& clock) {
  return std::make_unique<WithPdu>(std::move(bmc), std::move(outlets), processes, clock);
}

std::vector<std::string> argumentsFor(const inventory::Node& node, std::vector<std::string> words) {
  const std::pair<std::string, std::string> known[] = {
      {"{node}", node.name.str()}, {"{rack}", node.rack}, {"{unit}", std::to_string(node.unit)}};
  for (auto& word : words)
    for (const auto& [name, value] : known)
      for (auto at = word.find(name); at != std::string::npos;
           at = word.find(name, at + value.size()))
        word.replace(at, name.size(), value);
  return words;
}

}  // namespace muster::bmc
