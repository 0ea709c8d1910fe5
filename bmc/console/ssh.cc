// A console behind the BMC's SSH server. OpenSSH's client speaks and holds the session, sshpass hands it the password once; muster talks to
// it over pipes. Some servers are the console itself (OpenBMC's port 2200), others show the BMC's command line, where a command leads to it.
#include "base/deadline.h"
#include "base/io/files.h"
#include "bmc/console/plain_text.h"
#include "bmc/console/source.h"
#include "bmc/tool_words.h"

#include <fmt/format.h>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kLoginLimit = 40s;   ///< the key exchange of a BMC takes seconds; ssh's own limit to connect ends before
constexpr auto kPromptLimit = 20s;
constexpr std::size_t kMaxGreetingBytes = 64u << 10;  ///< a BMC's message of the day
constexpr std::string_view kReady = "muster: logged in\n";  ///< printed by ssh's LocalCommand, between the login and the first word of the BMC
constexpr std::string_view kPromptEnds = ">#$%:]";

constexpr ToolRefusal kRefusals[] = {
    {"Host key verification failed", ErrorCode::Denied, "its SSH host key is not the one of first contact; no password was sent"},
    {"no matching host key type", ErrorCode::Unavailable, "the BMC's SSH server offers only host keys that OpenSSH no longer knows"},
    {"no matching key exchange method", ErrorCode::Unavailable, "the BMC's SSH server offers only key exchanges that OpenSSH no longer knows"},
    {"no matching cipher", ErrorCode::Unavailable, "the BMC's SSH server offers only ciphers that OpenSSH no longer knows"},
};

/// "Permission denied (publickey,password)." names what the server takes.
bool takesPasswords(std::string_view said) {
  const auto list = said.substr(said.find("Permission denied ("));
  return list.find("password") != std::string_view::npos || list.find("keyboard-interactive") != std::string_view::npos;
}

/// A line that somebody is asked to go on with: not ended, and with the mark of a command line.
bool endsInPrompt(std::string_view said) {
  const auto newline = said.rfind('\n');
  const auto lines = plainLines(newline == std::string_view::npos ? said : said.substr(newline + 1), 1);
  if (lines.empty()) return false;
  const auto last = lines.back().find_last_not_of(' ');
  return last != std::string::npos && kPromptEnds.find(lines.back()[last]) != std::string_view::npos;
}

class SshLine final : public io::Dialogue {
 public:
  SshLine(std::unique_ptr<io::Dialogue> tool, std::string first) : tool_(std::move(tool)), first_(std::move(first)) {}
  Async<std::string> read() override {
    if (!first_.empty()) co_return std::exchange(first_, {});
    auto read = tool_->read();
    co_return co_await std::move(read);
  }
  Async<void> write(std::string bytes) override { return tool_->write(std::move(bytes)); }
  void hangUp() override { tool_->hangUp(); }

 private:
  std::unique_ptr<io::Dialogue> tool_;
  std::string first_;  ///< what came together with the greeting
};

class SshConsole final : public ConsoleSource {
 public:
  SshConsole(SshOptions options, Clock& clock) : options_(std::move(options)), clock_(clock) {}

  std::string name() const override { return fmt::format("serial console of {} by SSH", options_.host); }

  Async<std::unique_ptr<io::Dialogue>> open() override {
    if (!options_.place) {
      auto look = options_.ask();
      CO_TRY(told, co_await std::move(look));
      auto opening = openAt(std::move(told));
      co_return co_await std::move(opening);
    }
    auto opening = openAt(*options_.place);
    auto line = co_await std::move(opening);
    const bool silent = !line && (line.error().code() == ErrorCode::Unavailable || line.error().code() == ErrorCode::Timeout);
    if (!silent || !options_.ask) co_return line;
    auto look = options_.ask();  // it may have moved, with the BMC's firmware or by somebody's hand
    const auto told = co_await std::move(look);
    if (!told || *told == *options_.place) co_return line;
    auto again = openAt(*told);
    co_return co_await std::move(again);
  }

 private:
  Async<std::unique_ptr<io::Dialogue>> openAt(SshPlace place) {
    CO_TRY(password, options_.account.password());
    CO_TRY_OK(options_.account.may_try(password));
    CO_TRY(known, options_.host_keys());
    CO_TRY_OK(io::makeDirs(options_.folder, 0700));
    const auto file = options_.folder / (options_.node.str() + ".host-keys");
    CO_TRY_OK(io::writeFileAtomic(file, known, 0600));
    auto executor = co_await asio::this_coro::executor;
    CO_TRY(tool, io::startDialogue(executor, command(place, password, file, !known.empty())));
    auto login = greeting(*tool, password);
    auto bounded = withDeadline<std::string>(clock_, kLoginLimit, name(), std::move(login));
    CO_TRY(first, co_await std::move(bounded));
    if (known.empty()) CO_TRY_OK(keepHostKeys(file));
    if (!place.command.empty()) {
      auto enter = typeCommand(*tool, std::move(first), place.command);
      auto in_time = withDeadline<std::string>(clock_, kPromptLimit, fmt::format("{}: waiting for the BMC's prompt", name()), std::move(enter));
      CO_TRY(rest, co_await std::move(in_time));
      first = std::move(rest);
    }
    co_return std::unique_ptr<io::Dialogue>(std::make_unique<SshLine>(std::move(tool), std::move(first)));
  }

  /// One password, sent once: sshpass ends ssh when it is asked a second time. Old BMCs know RSA host keys with SHA-1 and group 14 only.
  io::Command command(const SshPlace& place, const Secret& password, const std::filesystem::path& host_keys, bool are_known) const {
    io::Command out{"sshpass", {"-e", "ssh", "-F", "none", "-tt", "-e", "none", "-p", std::to_string(place.port), "-l", options_.account.username}};
    const auto add = [&](std::string option) { out.args.insert(out.args.end(), {"-o", std::move(option)}); };
    for (const char* fixed : {"PubkeyAuthentication=no", "PreferredAuthentications=password,keyboard-interactive", "NumberOfPasswordPrompts=1", "GlobalKnownHostsFile=/dev/null",
                              "HashKnownHosts=no", "UpdateHostKeys=no", "CheckHostIP=no", "HostKeyAlgorithms=+ssh-rsa", "KexAlgorithms=+diffie-hellman-group14-sha1",
                              "ClearAllForwardings=yes", "ConnectTimeout=20", "ServerAliveInterval=15", "ServerAliveCountMax=4", "LogLevel=ERROR", "PermitLocalCommand=yes"})
      add(fixed);
    add("HostKeyAlias=" + options_.node.str());
    add("UserKnownHostsFile=" + host_keys.string());
    add(std::string("StrictHostKeyChecking=") + (are_known ? "yes" : "accept-new"));
    add(fmt::format("LocalCommand=echo '{}'", kReady.substr(0, kReady.size() - 1)));
    out.args.insert(out.args.end(), {"--", options_.host});
    out.env = {{"SSHPASS", password.reveal()}, {"SHELL", "/bin/sh"}, {"TERM", "vt100"}, {"SSH_AUTH_SOCK", ""}};
    return out;
  }

  Error refusal(const std::string& said, const Secret& password) const {
    if (said.find("Permission denied (") != std::string::npos) {
      if (!takesPasswords(said)) return Error(ErrorCode::Denied, name() + ": the BMC's SSH server takes no passwords");
      options_.account.refused(password);
      return Error(ErrorCode::Denied, name() + ": the BMC does not take the password");
    }
    if (const auto* row = rowIn(said, kRefusals)) {
      const auto more = row == kRefusals ? fmt::format(". Find out whether the BMC was replaced or reset on purpose; if so, run `muster bmc forget-pin {}`", options_.node.str()) : std::string();
      return Error(row->code, fmt::format("{}: {}{}", name(), row->means, more));
    }
    return Error(ErrorCode::Unavailable, fmt::format("{}: {}", name(), lastWords(said, "ssh")));
  }

  /// Ends with what came after the login.
  Async<std::string> greeting(io::Dialogue& tool, Secret password) {
    std::string said;
    while (said.size() < kMaxGreetingBytes) {
      auto read = tool.read();
      CO_TRY(piece, co_await std::move(read));
      if (piece.empty()) co_return tl::unexpected(refusal(said, password));
      said += piece;
      if (const auto ready = said.find(kReady); ready != std::string::npos) co_return said.substr(ready + kReady.size());
    }
    co_return fail(ErrorCode::Unavailable, name() + ": the BMC talks without end before the login");
  }

  /// Answers what was said until the command was typed: it belongs to what people see.
  Async<std::string> typeCommand(io::Dialogue& tool, std::string said, std::string command) {
    while (!endsInPrompt(said)) {
      if (said.size() > kMaxGreetingBytes) co_return fail(ErrorCode::Unavailable, name() + ": the BMC shows no prompt at which \"" + command + "\" could be typed");
      auto read = tool.read();
      CO_TRY(piece, co_await std::move(read));
      if (piece.empty()) co_return fail(ErrorCode::Unavailable, fmt::format("{}: the session ended before the BMC's prompt: {}", name(), lastWords(said, "ssh")));
      said += piece;
    }
    auto type = tool.write(command + "\r");
    CO_TRY_OK(co_await std::move(type));
    co_return said;
  }

  Result<void> keepHostKeys(const std::filesystem::path& file) {
    TRY(keys, io::readFile(file));
    if (keys.empty()) return fail(ErrorCode::Internal, "ssh wrote no host key to " + file.string());
    return options_.keep_host_keys(std::move(keys));
  }

  SshOptions options_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<ConsoleSource> makeSshConsole(SshOptions options, Clock& clock) { return std::make_unique<SshConsole>(std::move(options), clock); }

}  // namespace muster::bmc
