// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/tools.h"

#include "base/io/files.h"
#include "fabric/compare/switch_firmware.h"
#include "fabric/topology/topology.h"
#include "inventory/model/fabric.h"

#include <boost/asio/redirect_error.hpp>

#include <charconv>
#include <sstream>

namespace muster::fabric {

namespace {

constexpr std::chrono::seconds kQueryTimeout{20};
constexpr std::size_t kQuotedTroubleBytes = 400;
constexpr std::string_view kReader = "muster-pkeys", kLooker = "muster-ibnetdisc",
                           kAsker = "muster-switchfw";  // beside this program
constexpr std::string_view kOpensmName = "opensm";      // is told by the GUID in its file
constexpr int kNoPort = 3;                              // muster-ibnetdisc's exit code
constexpr std::array<int, 2> kNotRun = {126,
                                        127};  // a shell's or ssh's, where the tools have a prefix

// Said by the simulator's client library on every start; nothing is wrong then.
// Two ports with one GUID are no lost answer: all were asked, and the comparison names them.
constexpr std::string_view kDuplicatePort = "Duplicate Port: Port with guid";
constexpr std::array<std::string_view, 3> kHarmless = {
    "sim_connect: attached as client", kDuplicatePort,
    "Error Occurred when trying to insert new port guid"};

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    auto end = text.find('\n');
    if (auto line = text.substr(0, end); !line.empty()) lines.push_back(line);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return lines;
}

std::optional<std::uint64_t> numberAt(std::string_view text, int base) {
  if (base == 16 && text.substr(0, 2) == "0x") text.remove_prefix(2);
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> numberAfter(std::string_view text, std::string_view label, int base) {
  auto at = text.find(label);
  return at == std::string_view::npos ? std::nullopt
                                      : numberAt(text.substr(at + label.size()), base);
}

/// Empty: a `muster` that was copied without it.
std::string programBeside(std::string_view name) {
  std::error_code missing;
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe", missing).parent_path() / name;
  return std::filesystem::exists(program, missing) ? program.string() : std::string();
}

}  // namespace

Task<AsyncSemaphore::Pass> AsyncSemaphore::enter() {
  auto executor = co_await asio::this_coro::executor;
  while (busy_) {
    auto bell =
        std::make_shared<asio::steady_timer>(executor, asio::steady_timer::time_point::max());
    waiting_.push_back(bell);
    boost::system::error_code ignored;
    co_await bell->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  busy_ = true;
  co_return Pass(*this);
}

void AsyncSemaphore::leave() {
  busy_ = false;
  // A waiter that was cancelled has gone already; ringing all the rest costs a few wake-ups and
  // cannot lose one.
  for (auto& bell : std::exchange(waiting_, {})) bell->cancel();
}

std::string canonicalGuid(std::string_view text) {
  auto value = numberAt(text, 16);
  return value ? fmt::format("0x{:016x}", *value) : std::string();
}

Result<SmInfo> parseSmInfo(std::string_view text) {
  auto lid = numberAfter(text, "sm lid ", 10);
  auto guid = numberAfter(text, "sm guid ", 16);
  if (!lid || !guid)
    return fail(ErrorCode::Corrupt,
                fmt::format("sminfo said: {}", text.substr(0, kQuotedTroubleBytes)));
  return SmInfo{fmt::format("0x{:016x}", *guid), static_cast<int>(*lid),
                text.find("SMINFO_MASTER") != std::string_view::npos,
                text.find("SMINFO_STANDBY") != std::string_view::npos};
}

Result<std::set<int>> parseManagers(std::string_view text) {
  std::set<int> lids;
  auto end = text.find("IsSMdisabled");
  if (text.find("IsSM ports") == std::string_view::npos || end == std::string_view::npos)
    return fail(ErrorCode::Corrupt,
                fmt::format("saquery -s said: {}", text.substr(0, kQuotedTroubleBytes)));
  for (auto line : linesOf(text.substr(0, end)))
    if (auto lid = numberAfter(line, "EndPortLid..............", 10))
      lids.insert(static_cast<int>(*lid));
  return lids;
}

Result<PkeyTable> parsePkeys(std::string_view text) {
  PkeyTable table;
  bool complete = false;
  for (auto line : linesOf(text)) {
    complete |= line.find("pkeys capacity for this port") != std::string_view::npos;
    for (auto at = line.find("0x"); at != std::string_view::npos; at = line.find("0x", at + 2)) {
      auto key = numberAt(line.substr(at), 16);
      if (!key || *key > 0xffff)
        return fail(ErrorCode::Corrupt, fmt::format("smpquery pkeys said: {}", line));
      if (*key != 0) table.insert(static_cast<std::uint16_t>(*key));
    }
  }
  if (!complete)
    return fail(ErrorCode::Corrupt, "smpquery pkeys ended before the end of the table");
  return table;
}

Result<std::map<PkeyPort, PkeyTable>> parsePkeyTables(std::string_view text,
                                                      const std::vector<PkeyPort>& asked) {
  std::map<PkeyPort, PkeyTable> tables;
  for (auto line : linesOf(text)) {
    std::istringstream words{std::string(line)};
    PkeyPort port;
    if (!(words >> port.first >> port.second))
      return fail(ErrorCode::Corrupt, fmt::format("muster-pkeys said: {}", line));
    auto& table = tables[port];
    for (std::string word; words >> word;) {
      auto key = word.starts_with("0x") ? numberAt(word, 16) : std::nullopt;
      if (!key || *key > 0xffff)
        return fail(ErrorCode::Corrupt, fmt::format("muster-pkeys said: {}", line));
      table.insert(static_cast<std::uint16_t>(*key));
    }
  }
  for (const auto& [lid, number] : asked)
    if (!tables.contains({lid, number}))
      return fail(
          ErrorCode::Corrupt,
          fmt::format("muster-pkeys did not report the table of LID {} port {}", lid, number));
  return tables;
}

Result<std::map<int, ReportedFirmware>> parseSwitchFirmware(std::string_view text,
                                                            const std::vector<int>& asked) {
  std::map<int, ReportedFirmware> told;
  for (auto line : linesOf(text)) {
    std::istringstream words{std::string(line)};
    ReportedFirmware one;
    if (!(words >> one.lid >> one.version))
      return fail(ErrorCode::Corrupt, fmt::format("{} said: {}", kAsker, line));
    words >> one.psid;
    if (one.version == "-") one.version.clear();
    if (one.version.find_first_not_of("0123456789.") != std::string::npos ||
        (!one.version.empty() && std::count(one.version.begin(), one.version.end(), '.') != 2))
      return fail(ErrorCode::Corrupt, fmt::format("{} said: {}", kAsker, line));
    told[one.lid] = std::move(one);
  }
  for (const int lid : asked)
    if (!told.contains(lid))
      return fail(ErrorCode::Corrupt, fmt::format("{} did not report LID {}", kAsker, lid));
  return told;
}

std::set<std::string> guidsInSubnetList(std::string_view text) {
  constexpr std::string_view kLabel = "NodeGUID:";
  std::set<std::string> guids;
  for (auto at = text.find(kLabel); at != std::string_view::npos; at = text.find(kLabel, at + 1)) {
    if (auto guid = numberAt(text.substr(at + kLabel.size()), 16))
      guids.insert(fmt::format("0x{:016x}", *guid));
  }
  return guids;
}

std::vector<std::string> sharedGuids(std::string_view stderr_text) {
  std::vector<std::string> guids;
  for (auto line : linesOf(stderr_text))
    if (line.find(kDuplicatePort) != std::string_view::npos)
      if (auto guid = numberAfter(line, "guid ", 16))
        guids.push_back(fmt::format("0x{:016x}", *guid));
  return guids;
}

std::string troubleIn(std::string_view stderr_text) {
  const auto quoted = [lines = linesOf(stderr_text)](bool ours) {
    std::string trouble;
    for (auto line : lines) {
      bool harmless = std::any_of(kHarmless.begin(), kHarmless.end(), [&](std::string_view known) {
        return line.find(known) != std::string_view::npos;
      });
      if (!harmless && (!ours || line.starts_with("muster-")) &&
          trouble.size() < kQuotedTroubleBytes)
        trouble += std::string(trouble.empty() ? "" : " | ") + std::string(line);
    }
    return trouble;
  };
  const auto named = quoted(true);  // says who is meant, the library only by which way it was asked
  return named.empty() ? quoted(false) : named;
}

io::Command Tools::command(std::string tool, std::vector<std::string> args) const {
  io::Command command;
  auto words = options_.tool_prefix;
  const bool looks = tool != kOpensmName;
  words.push_back(std::move(tool));
  if (looks && !options_.local_hca.empty()) words.insert(words.end(), {"-C", options_.local_hca});
  command.program = words.front();
  command.args.assign(words.begin() + 1, words.end());
  command.args.insert(command.args.end(), args.begin(), args.end());
  command.env = options_.tool_env;
  // The simulator's client library makes a folder where its program runs, and a killed one leaves
  // it there: not in the operator's folder.
  std::error_code ignored;
  if (std::filesystem::create_directories(options_.run_folder, ignored); !ignored)
    command.working_dir = options_.run_folder;
  // IB tools live in sbin; a prefix such as ibsim-run looks in PATH only.
  const char* path = std::getenv("PATH");
  command.env.try_emplace("PATH", fmt::format("{}:/usr/sbin:/sbin", path ? path : "/usr/bin:/bin"));
  return command;
}

Async<io::ProcessExit> Tools::answer(std::string tool, std::vector<std::string> args,
                                     int accepted) {
  auto call = command(tool, std::move(args));
  call.timeout = tool == "ibnetdiscover" || tool == "ibqueryerrors" || tool == "dump_fts"
                     ? options_.discovery_limit
                     : kQueryTimeout;
  co_return co_await answerOf(std::move(tool), std::move(call), accepted);
}

Async<io::ProcessExit> Tools::answerOf(std::string tool, io::Command call, int accepted) {
  CO_TRY(exit, co_await processes_.run(std::move(call)));
  auto trouble = troubleIn(exit.err);
  if ((exit.code != 0 && exit.code != accepted) || !trouble.empty())
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} got no complete answer from the fabric (exit code {}): {}", tool,
                               exit.code, trouble));
  co_return std::move(exit);
}

Async<std::string> Tools::output(std::string tool, std::vector<std::string> args) {
  CO_TRY(exit, co_await answer(std::move(tool), std::move(args)));
  co_return std::move(exit.out);
}

namespace {

Result<Topology> topologyIn(const io::ProcessExit& exit, std::string_view tool) {
  auto topology = parseIbnetdiscover(exit.out);
  if (!topology) return fail(std::move(topology).error().within(std::string(tool)));
  topology->shared_guids = sharedGuids(exit.err);
  return topology;
}

}  // namespace

Async<Topology> Tools::discover() {
  auto topology = co_await discoverByLibrary();
  if (topology || topology.error().code() != ErrorCode::Denied) co_return topology;
  co_return co_await discoverByTool();
}

Async<Topology> Tools::discoverByLibrary() {
  const auto looker = programBeside(kLooker);
  if (looker.empty())
    co_return fail(ErrorCode::Denied,
                   fmt::format("{} is missing in the folder of this program", kLooker));
  auto call = command(looker, {});
  call.timeout = options_.discovery_limit;
  CO_TRY(exit, co_await processes_.run(std::move(call)));
  if (exit.code == kNoPort || std::count(kNotRun.begin(), kNotRun.end(), exit.code) > 0)
    co_return fail(ErrorCode::Denied, fmt::format("{}: {}", kLooker, troubleIn(exit.err)));
  if (auto trouble = troubleIn(exit.err); exit.code != 0 || !trouble.empty())
    co_return fail(
        ErrorCode::Unavailable,
        fmt::format("the discovery is not complete (exit code {}): {}", exit.code, trouble));
  managers_told_.clear();
  for (auto line : linesOf(std::string_view(exit.out).substr(0, exit.out.find("\n\n"))))
    if (auto lid = numberAfter(line, "# subnet manager at lid ", 10); lid && *lid != 0)
      managers_told_.insert(static_cast<int>(*lid));
  co_return topologyIn(exit, kLooker);
}

Async<Topology> Tools::discoverByTool() {
  CO_TRY(exit, co_await answer("ibnetdiscover", {}));
  co_return topologyIn(exit, "ibnetdiscover");
}

Async<std::map<int, ReportedFirmware>> Tools::switchFirmware(std::vector<int> lids) {
  const auto asker = programBeside(kAsker);
  if (asker.empty())
    co_return fail(ErrorCode::Denied,
                   fmt::format("{} is missing in the folder of this program", kAsker));
  auto call = command(asker, {});
  for (const int lid : lids) call.stdin_text += fmt::format("{}\n", lid);
  call.timeout = options_.discovery_limit;
  CO_TRY(exit, co_await processes_.run(std::move(call)));
  if (exit.code != 0)  // silent switches make it speak on stderr and end with 0
    co_return fail(exit.code == kNoPort ? ErrorCode::Denied : ErrorCode::Unavailable,
                   fmt::format("{} (exit code {}): {}", kAsker, exit.code, troubleIn(exit.err)));
  co_return parseSwitchFirmware(exit.out, lids);
}

Async<SmInfo> Tools::smInfo() {
  CO_TRY(text, co_await output("sminfo", {}));
  co_return parseSmInfo(text);
}

Async<SmInfo> Tools::smInfoOf(int lid) {
  std::vector<std::string> args = {std::to_string(lid)};
  CO_TRY(text, co_await output("sminfo", std::move(args)));
  co_return parseSmInfo(text);
}

Async<std::set<int>> Tools::managerLids() {
  std::vector<std::string> args = {"-s"};
  CO_TRY(text, co_await output("saquery", std::move(args)));
  CO_TRY(lids, parseManagers(text));
  lids.insert(managers_told_.begin(), managers_told_.end());
  co_return std::move(lids);
}

Async<ForwardingTables> Tools::forwardingTables() {
  std::vector<std::string> args = {"-n"};
  CO_TRY(text, co_await output("dump_fts", std::move(args)));
  co_return parseForwardingTables(text);
}

Async<links::ReadingsByGuid> Tools::counters() {
  constexpr int kOverThreshold = 1;
  // The thresholds that are installed would hide a few errors of each port. No service levels: they
  // are asked of the subnet manager.
  const auto thresholds = options_.run_folder / "no-thresholds";
  CO_TRY_OK(io::makeDirs(options_.run_folder));
  CO_TRY_OK(io::writeFileAtomic(thresholds, "# every error counts\n"));
  std::vector<std::string> errors_args = {"--skip-sl", "--threshold-file", thresholds.string()},
                           data_args = {"--skip-sl", "--counters"};
  CO_TRY(errors, co_await answer("ibqueryerrors", std::move(errors_args), kOverThreshold));
  CO_TRY(data, co_await answer("ibqueryerrors", std::move(data_args)));
  co_return links::parseQueryErrors(errors.out, data.out);
}

Async<PkeyTable> Tools::pkeys(int lid, int port) {
  std::vector<std::string> args = {"pkeys", std::to_string(lid), std::to_string(port)};
  CO_TRY(text, co_await output("smpquery", std::move(args)));
  co_return parsePkeys(text);
}

Async<std::map<PkeyPort, PkeyTable>> Tools::pkeyTables(std::vector<PkeyPort> ports) {
  if (ports.empty()) co_return std::map<PkeyPort, PkeyTable>{};
  if (const auto reader = programBeside(kReader); !reader.empty()) {
    auto call = command(reader, {});
    for (const auto& [lid, number] : ports) call.stdin_text += fmt::format("{} {}\n", lid, number);
    call.timeout = options_.discovery_limit;
    CO_TRY(exit, co_await answerOf(std::string(kReader), std::move(call), 0));
    co_return parsePkeyTables(exit.out, ports);
  }
  std::map<PkeyPort, PkeyTable> tables;
  for (const auto& port : ports) {
    CO_TRY(table, co_await pkeys(port.first, port.second));
    tables[port] = std::move(table);
  }
  co_return std::move(tables);
}

}  // namespace muster::fabric
