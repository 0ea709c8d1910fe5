// SPDX-License-Identifier: Apache-2.0
#include "bmc/ipmi/ipmi_bmc.h"

#include "base/async/poll.h"
#include "bmc/ipmi/ipmitool_errors.h"
#include "bmc/readiness.h"
#include "bmc/withheld_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kOnLimit = 120s, kOffLimit = 120s, kGracefulLimit = 180s;
constexpr auto kOffOnPause = 10s;  ///< between off and on: some boards need it to notice
constexpr auto kToolLimit = 60s;   ///< ipmitool's own retries end before
constexpr auto kBackLimit = 480s;  ///< of a BMC that restarts
constexpr int kBootFlags = 5;      ///< boot parameter (IPMI 2.0, table 28-14)
constexpr std::size_t kMaxLines = 8'192;
constexpr std::string_view kSystemEventLog = "SEL";

constexpr ToolError kRefusals[] = {
    {"insufficient privilege", ErrorCode::Denied, "the account may not do that"},
    {"invalid authentication algorithm", ErrorCode::InvalidInput,
     "the BMC does not speak this cipher suite; say another in ipmi: {cipher_suite: 3}"},
    {"no matching cipher suite", ErrorCode::InvalidInput,
     "the BMC does not speak this cipher suite; say another in ipmi: {cipher_suite: 3}"},
    {"Invalid data field in request", ErrorCode::NotFound, "the BMC does not offer that"},
    {"Invalid command", ErrorCode::NotFound, "the BMC does not offer that"},
    {"Command not supported in present state", ErrorCode::Conflict, "the BMC cannot do that now"},
};

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; lines.size() < kMaxLines && std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> fieldsOf(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) {
    const auto begin = field.find_first_not_of(' '), end = field.find_last_not_of(' ');
    fields.push_back(begin == std::string::npos ? std::string()
                                                : field.substr(begin, end - begin + 1));
  }
  return fields;
}

std::string lastLine(const std::string& text) {
  for (auto lines = linesOf(text); !lines.empty(); lines.pop_back())
    if (!lines.back().empty()) return lines.back();
  return "ipmitool ended without a message";
}

/// "11/20/2026" and "14:03:11" → "2026-11-20T14:03:11"; as it is where it is no date ("Pre-Init").
std::string createdOf(const std::string& date, const std::string& time) {
  if (date.size() != 10 || date[2] != '/' || date[5] != '/') return date;
  return fmt::format("{}-{}-{}T{}", date.substr(6), date.substr(0, 2), date.substr(3, 2),
                     time.substr(0, 8));
}

struct UnitName {
  std::string_view ipmi, kind, unit;
};
constexpr UnitName kUnits[] = {{"degrees C", "Temperature", "Cel"},
                               {"RPM", "Rotational", "RPM"},
                               {"Watts", "Power", "W"},
                               {"Volts", "Voltage", "V"},
                               {"Amps", "Current", "A"}};

std::string_view bootName(BootTarget target) {
  switch (target) {
    case BootTarget::None:
      return "none";
    case BootTarget::Pxe:
      return "pxe";
    case BootTarget::Disk:
      return "disk";
    case BootTarget::Cd:
      return "cdrom";
    case BootTarget::Usb:
    case BootTarget::UefiHttp:
      break;
  }
  return "";
}
/// As ipmitool words what it reads.
std::string_view bootWords(BootTarget target) {
  return target == BootTarget::Pxe    ? "Force PXE"
         : target == BootTarget::Disk ? "Force Boot from default Hard-Drive"
         : target == BootTarget::Cd   ? "Force Boot from CD/DVD"
                                      : "No override";
}

class IpmiBmc final : public Bmc {
 public:
  IpmiBmc(IpmiOptions options, io::ProcessRunner& processes, Clock& clock)
      : options_(std::move(options)), processes_(processes), clock_(clock) {}

  std::string address() const override {
    return fmt::format("ipmi://{}:{}", options_.host, options_.port);
  }

  Async<SystemInfo> system() override {
    CO_TRY(said, co_await tool({"chassis", "power", "status"}));
    SystemInfo info;
    info.power = said.find("is on") != std::string::npos    ? PowerState::On
                 : said.find("is off") != std::string::npos ? PowerState::Off
                                                            : PowerState::Unknown;
    co_return info;
  }

  Async<void> power(PowerAction action) override {
    if (action == PowerAction::ForceRestart) {  // a reset would leave nothing to prove it by
      CO_TRY_OK(co_await reach(PowerState::Off, "off", kOffLimit));
      co_await clock_.sleep(kOffOnPause);
    }
    const bool on = action == PowerAction::On || action == PowerAction::ForceRestart;
    co_return co_await (on ? reach(PowerState::On, "on", kOnLimit)
                        : action == PowerAction::GracefulShutdown
                            ? reach(PowerState::Off, "soft", kGracefulLimit)
                            : reach(PowerState::Off, "off", kOffLimit));
  }

  Async<void> sendNmi() override {
    CO_TRY_OK(co_await tool({"chassis", "power", "diag"}));
    co_return Result<void>();
  }

  Async<void> bootOnce(BootTarget target) override { co_return co_await boot({target, false, {}}); }

  Async<void> boot(BootOverride what) override {
    if (bootName(what.target).empty() || !what.http_uri.empty())
      co_return fail(ErrorCode::NotFound, address() + " knows no boot by UEFI HTTP");
    std::vector<std::string> words = {"chassis", "bootdev", std::string(bootName(what.target))};
    if (what.target != BootTarget::None)
      words.push_back(what.persistent ? "options=efiboot,persistent" : "options=efiboot");
    CO_TRY_OK(co_await tool(std::move(words)));
    CO_TRY(said, co_await tool({"chassis", "bootparam", "get", std::to_string(kBootFlags)}));
    const bool lasts = said.find("all future boots") != std::string::npos;
    if (said.find(bootWords(what.target)) != std::string::npos && (!what.persistent || lasts))
      co_return Result<void>();
    std::string seen = "nothing";
    for (const auto& line : linesOf(said))
      if (line.find("Boot Device Selector") != std::string::npos)
        seen = line.substr(line.find(':') + 1) + (lasts ? ", for all boots" : ", for one boot");
    co_return fail(
        ErrorCode::Unavailable,
        fmt::format("{} accepted the boot device {}{} but shows{}", address(),
                    bootName(what.target), what.persistent ? " for all boots" : "", seen));
  }

  Async<EventLog> eventLog(std::size_t limit) override {
    auto first = system();  // says what is wrong with the login; a list must not be verbose, or it
                            // has another form
    CO_TRY_OK(co_await std::move(first));
    CO_TRY(said, co_await tool(
                     {"-c", "sel", "list", "last", std::to_string(std::max<std::size_t>(limit, 1))},
                     Say::Little));
    EventLog out{{}, {std::string(kSystemEventLog)}};
    for (const auto& line : linesOf(said)) {
      const auto fields = fieldsOf(line);
      if (fields.size() < 5) continue;
      const bool critical = line.find("Critical") != std::string::npos ||
                            line.find("Non-recoverable") != std::string::npos ||
                            line.find("Uncorrectable") != std::string::npos;
      std::string message = fields[3];
      for (std::size_t i = 4; i < fields.size(); ++i)
        message += (fields[i].empty() ? "" : ": ") + fields[i];
      out.entries.push_back({fields[0], createdOf(fields[1], fields[2]),
                             critical ? "Critical" : "OK", std::move(message),
                             std::string(kSystemEventLog)});
    }
    co_return out;
  }

  Async<std::vector<SensorReading>> sensors() override {
    // From an empty repository ipmitool "rebuilds" one, which erases it first: a read that writes.
    CO_TRY(repository, co_await tool({"sdr", "info"}));
    for (const auto& line : linesOf(repository))
      if (line.starts_with("Record Count") && line.ends_with(" 0"))
        co_return fail(ErrorCode::NotFound, address() + " shows no sensors");
    CO_TRY(said, co_await tool({"-c", "sdr", "list", "full"}, Say::Little));
    std::vector<SensorReading> out;
    for (const auto& line : linesOf(said)) {
      const auto fields = fieldsOf(line);
      if (fields.size() < 4) continue;
      double value = 0;
      const auto [end, error] =
          std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), value);
      if (error != std::errc() || end != fields[1].data() + fields[1].size()) continue;
      const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                      [&](const UnitName& each) { return each.ipmi == fields[2]; });
      const bool known = unit != std::end(kUnits);
      const auto& status = fields[3];
      out.push_back({fields[0], known ? std::string(unit->kind) : "",
                     known ? std::string(unit->unit) : fields[2], value,
                     status == "ok"                     ? "OK"
                     : status == "nc"                   ? "Warning"
                     : status == "cr" || status == "nr" ? "Critical"
                                                        : "",
                     std::nullopt});
    }
    if (out.empty()) co_return fail(ErrorCode::NotFound, address() + " shows no sensors");
    co_return out;
  }

  Async<void> resetBmc() override {
    CO_TRY_OK(co_await tool({"mc", "reset", "cold"}));
    co_return co_await waitUntilReady(*this, clock_, {kBackLimit, options_.poll});
  }

  Async<std::vector<FirmwareItem>> firmware() override { return none<std::vector<FirmwareItem>>(); }
  Async<std::string> startUpdate(FirmwareUpdate) override { return none<std::string>(); }
  Async<TaskStatus> task(std::string) override { return none<TaskStatus>(); }
  Async<TaskList> tasks() override { return none<TaskList>(); }

 private:
  template <class T>
  Async<T> none() {
    co_return fail(ErrorCode::NotFound, "IPMI knows nothing of firmware");
  }

  Async<void> reach(PowerState wanted, std::string verb, std::chrono::seconds limit) {
    CO_TRY(before, co_await system());
    if (before.power == wanted) co_return Result<void>();
    auto ordered = co_await tool({"chassis", "power", verb});
    if (!ordered && !ordered.error().canRetry())
      co_return fail(
          std::move(ordered.error()));  // a lost answer may have worked: the state decides
    const auto until = clock_.steady() + limit;
    while (true) {
      auto now = co_await system();
      if (now && now->power == wanted) co_return Result<void>();
      if (clock_.steady() >= until) {
        co_return fail(
            ErrorCode::Timeout,
            fmt::format("{} accepted {} but its power state did not change within {} s{}",
                        address(), verb, limit.count(), now ? "" : "; last: " + now.error().str()));
      }
      co_await clock_.sleep(options_.poll);
    }
  }

  enum class Say { Much, Little };
  /// What it says on standard output. Only when it says much does a refused password show as such.
  Async<std::string> tool(std::vector<std::string> words, Say say = Say::Much) {
    CO_TRY(password, options_.password());
    CO_TRY_OK(options_.may_try(password));
    io::Command command{"ipmitool",
                        {"-I", "lanplus", "-H", options_.host, "-p", std::to_string(options_.port),
                         "-U", options_.username, "-E", "-C", std::to_string(options_.cipher_suite),
                         "-N", "3", "-R", "3"}};
    if (say == Say::Much) command.args.emplace_back("-v");
    command.args.insert(command.args.end(), words.begin(), words.end());
    command.env["IPMI_PASSWORD"] = password.reveal();
    command.timeout = kToolLimit;
    CO_TRY(ended, co_await processes_.run(std::move(command)));
    if (ended.code == 0) co_return ended.out;  // what else it says, it asked the BMC for itself
    const auto said = ended.out + ended.err;
    if (const auto* row = refusalIn(said, kRefusals)) {
      if (row->of_password) options_.refused(password);
      co_return fail(row->code,
                     fmt::format("{}: {} ({})", address(), row->means, fmt::join(words, " ")));
    }
    WithheldWords withheld;
    withheld.add(password);
    const auto last = withheld.without(lastLine(ended.err.empty() ? ended.out : ended.err));
    co_return fail(ErrorCode::Unavailable, fmt::format("{}: {}", address(), last));
  }

  IpmiOptions options_;
  io::ProcessRunner& processes_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<Bmc> makeIpmiBmc(IpmiOptions options, io::ProcessRunner& processes, Clock& clock) {
  return std::make_unique<IpmiBmc>(std::move(options), processes, clock);
}

std::string hostOf(const std::string& url) {
  const auto begin = url.find("://");
  auto host = begin == std::string::npos ? url : url.substr(begin + 3);
  return host.substr(0, host.find_first_of(":/"));
}

}  // namespace muster::bmc
