// SPDX-License-Identifier: Apache-2.0
// A console behind the BMC's SSH server. OpenSSH's client speaks and holds the session, sshpass
// hands it the password once; muster talks to it over pipes. Some servers are the console itself
// (OpenBMC's port 2200), others show the BMC's command line, where a command leads to it.
#include "base/async/deadline.h"
#include "base/io/files.h"
#include "bmc/console/ansi_strip.h"
#include "bmc/console/source.h"
#include "bmc/tool_errors.h"

#include <fmt/format.h>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kLoginLimit =
    40s;  ///< the key exchange of a BMC takes seconds; ssh's own limit to connect ends before
constexpr auto kPromptLimit = 20s;
constexpr std::size_t kMaxGreetingBytes = 64u << 10;  ///< a BMC's message of the day
constexpr std::string_view kReady =
    "muster: logged in\n";  ///< printed by ssh's LocalCommand, between the login and the first word
                            ///< of the BMC
constexpr std::string_view kPromptEnds = ">#$%";
// As sshpass -v words it, in lines of its own.
constexpr std::string_view kToolTalk = "SSHPASS: ";
constexpr std::string_view kSent = "SSHPASS: detected prompt. Sending password.",
                           kAskedAgain = "SSHPASS: detected prompt, again.";

constexpr ToolError kRefusals[] = {
    {"Host key verification failed", ErrorCode::Denied,
     "its SSH host key is not the one that is trusted; no password was sent"},
    {"no matching host key type", ErrorCode::Unavailable,
     "the BMC's SSH server offers only host keys that OpenSSH no longer knows"},
    {"no matching key exchange method", ErrorCode::Unavailable,
     "the BMC's SSH server offers only key exchanges that OpenSSH no longer knows"},
    {"no matching cipher", ErrorCode::Unavailable,
     "the BMC's SSH server offers only ciphers that OpenSSH no longer knows"},
};

bool contains(std::string_view said, std::string_view what) {
  return said.find(what) != std::string_view::npos;
}

/// The password was sent and not taken. A server with two methods asks again by the other, one that
/// allows a single try ends the session.
bool refusesPassword(std::string_view said) {
  return contains(said, kAskedAgain) ||
         (contains(said, kSent) && (contains(said, "Permission denied") ||
                                    contains(said, "Too many authentication failures")));
}

/// Without sshpass's own talk, and without any line that shows the password.
std::string forPeople(std::string_view said, const Secret& password) {
  std::string out;
  while (!said.empty()) {
    const auto line = said.substr(0, said.find('\n') + 1 ? said.find('\n') + 1 : said.size());
    said.remove_prefix(line.size());
    if (!line.starts_with(kToolTalk) &&
        (password.reveal().empty() || !contains(line, password.reveal())))
      out += line;
  }
  return out;
}

std::string_view unfinishedLine(std::string_view said) {
  return said.substr(said.find_last_of('\n') + 1);
}

/// A line that somebody is asked to go on with: not ended, and with the mark of a command line.
bool endsInPrompt(std::string_view said) {
  const auto lines = plainLines(unfinishedLine(said), 1);
  if (lines.empty()) return false;
  const auto last = lines.back().find_last_not_of(' ');
  return last != std::string::npos && contains(kPromptEnds, {&lines.back()[last], 1});
}

class SshLine final : public io::Dialogue {
 public:
  SshLine(std::unique_ptr<io::Dialogue> tool, std::string first)
      : tool_(std::move(tool)), first_(std::move(first)) {}
  Async<std::string> read() override {
    if (!first_.empty()) co_return std::exchange(first_, {});
    co_return co_await tool_->read();
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

  std::string name() const override {
    return fmt::format("serial console of {} by SSH", options_.host);
  }

  Async<std::unique_ptr<io::Dialogue>> open() override {
    Result<std::unique_ptr<io::Dialogue>> line =
        fail(ErrorCode::NotFound, "nobody has said where it is");
    if (options_.place) {
      line = co_await openAt(*options_.place);
      const bool silent = !line && (line.error().code() == ErrorCode::Unavailable ||
                                    line.error().code() == ErrorCode::Timeout);
      if (!silent || !options_.ask) co_return line;
    }
    auto look = options_.ask();  // it may have moved, with the BMC's firmware or by somebody's hand
    auto told = co_await std::move(look);
    if (!told) {
      const bool says_why = !options_.place || told.error().code() == ErrorCode::NotFound ||
                            told.error().code() == ErrorCode::InvalidInput;
      co_return says_why ? std::unexpected(std::move(told).error())
                         : std::unexpected(std::move(line).error());
    }
    if (options_.place == *told) co_return line;
    line = co_await openAt(*told);
    if (line) options_.place = *told;
    co_return line;
  }

 private:
  Async<std::unique_ptr<io::Dialogue>> openAt(SshConsoleEndpoint place) {
    CO_TRY(password, options_.account.password());
    CO_TRY_OK(options_.account.may_try(password));
    CO_TRY(known, options_.host_keys());
    CO_TRY_OK(io::makeDirs(options_.folder, 0700));
    const auto file = options_.folder / (options_.node.str() + ".host-keys");
    CO_TRY_OK(io::writeFileAtomic(file, known, 0600));
    auto executor = co_await asio::this_coro::executor;
    CO_TRY(tool, io::startDialogue(executor, command(place, password, file, !known.empty()),
                                   io::HangUp::Terminate));
    const auto said = std::make_shared<std::string>();
    auto login = greeting(*tool, password, said);
    auto greeted =
        co_await withDeadline<std::string>(clock_, kLoginLimit, name(), std::move(login));
    // Whether it was taken is not known: not the same as refused, but not to be tried over and
    // over.
    if (!greeted && greeted.error().code() == ErrorCode::Timeout && contains(*said, kSent))
      co_return fail(ErrorCode::Denied, name() + ": the BMC does not answer to the password");
    if (!greeted) co_return std::unexpected(std::move(greeted).error());
    auto first = std::move(*greeted);
    if (known.empty()) CO_TRY_OK(keepHostKeys(file));
    if (!place.command.empty()) {
      auto enter = typeCommand(*tool, std::move(first), place.command);
      CO_TRY(rest, co_await withDeadline<std::string>(
                       clock_, kPromptLimit,
                       fmt::format("{}: waiting for the BMC's prompt", name()), std::move(enter)));
      first = std::move(rest);
    }
    co_return std::unique_ptr<io::Dialogue>(
        std::make_unique<SshLine>(std::move(tool), std::move(first)));
  }

  /// One password, sent once: sshpass ends ssh when it is asked a second time, and says so (-v).
  /// Old BMCs know RSA host keys with SHA-1 and group 14 only.
  io::Command command(const SshConsoleEndpoint& place, const Secret& password,
                      const std::filesystem::path& host_keys, bool are_known) const {
    io::Command out{"sshpass",
                    {"-v", "-e", "ssh", "-F", "none", "-tt", "-e", "none", "-p",
                     std::to_string(place.port), "-l", options_.account.username}};
    const auto add = [&](std::string option) {
      out.args.insert(out.args.end(), {"-o", std::move(option)});
    };
    for (const char* fixed :
         {"PubkeyAuthentication=no", "PreferredAuthentications=password,keyboard-interactive",
          "NumberOfPasswordPrompts=1", "GlobalKnownHostsFile=/dev/null", "HashKnownHosts=no",
          "UpdateHostKeys=no", "CheckHostIP=no", "HostKeyAlgorithms=+ssh-rsa",
          "KexAlgorithms=+diffie-hellman-group14-sha1", "ClearAllForwardings=yes",
          "ConnectTimeout=20", "ServerAliveInterval=15", "ServerAliveCountMax=4", "LogLevel=ERROR",
          "PermitLocalCommand=yes"})
      add(fixed);
    add("HostKeyAlias=" + options_.node.str());
    add("UserKnownHostsFile=" + host_keys.string());
    add(std::string("StrictHostKeyChecking=") + (are_known ? "yes" : "accept-new"));
    add(fmt::format("LocalCommand=echo '{}'", kReady.substr(0, kReady.size() - 1)));
    out.args.insert(out.args.end(), {"--", options_.host});
    out.env = {{"SSHPASS", password.reveal()},
               {"SHELL", "/bin/sh"},
               {"TERM", "vt100"},
               {"SSH_AUTH_SOCK", ""},
               {"SSH_ASKPASS_REQUIRE", "never"}};
    return out;
  }

  Error refusal(const std::string& said, const Secret& password) const {
    if (refusesPassword(said)) {
      options_.account.refused(password);
      return Error(ErrorCode::Denied, name() + ": the BMC does not take the password");
    }
    const bool sent = contains(said, kSent);
    if (!sent && contains(said, "Permission denied ("))
      return Error(ErrorCode::Denied, name() + ": the BMC's SSH server takes no passwords");
    if (const auto* row = findToolError(said, kRefusals)) {
      const auto more =
          row == kRefusals
              ? fmt::format(
                    ". Find out whether the BMC was replaced or reset on purpose; if so, {}{}",
                    options_.key_declared ? "write its new key as bmc_ssh_key of "
                                          : "run: muster bmc trust reset ",
                    options_.node.str())
              : std::string();
      return Error(row->code, fmt::format("{}: {}{}", name(), row->means, more));
    }
    const auto words = lastMessage(forPeople(said, password), "ssh");
    return sent ? Error(ErrorCode::Denied,
                        fmt::format("{}: the BMC ended the session when it had the password: {}",
                                    name(), words))
                : Error(ErrorCode::Unavailable, fmt::format("{}: {}", name(), words));
  }

  /// Ends with what came after the login; `said` is what came before it.
  Async<std::string> greeting(io::Dialogue& tool, Secret password,
                              std::shared_ptr<std::string> said) {
    while (said->size() < kMaxGreetingBytes) {
      CO_TRY(piece, co_await tool.read());
      if (piece.empty()) co_return std::unexpected(refusal(*said, password));
      *said += piece;
      if (const auto ready = said->find(kReady); ready != std::string::npos)
        co_return said->substr(ready + kReady.size());
    }
    co_return fail(ErrorCode::Unavailable, name() + ": the BMC talks without end before the login");
  }

  /// Answers what was said until the command was typed: it belongs to what people see.
  Async<std::string> typeCommand(io::Dialogue& tool, std::string said, std::string command) {
    while (!endsInPrompt(said)) {
      if (contains(unfinishedLine(said), "assword"))
        co_return fail(ErrorCode::Denied,
                       name() + ": the BMC wants another password before it lets anybody in");
      if (said.size() > kMaxGreetingBytes)
        co_return fail(ErrorCode::Unavailable, name() + ": the BMC shows no prompt at which \"" +
                                                   command + "\" could be typed");
      CO_TRY(piece, co_await tool.read());
      if (piece.empty())
        co_return fail(ErrorCode::Unavailable,
                       fmt::format("{}: the session ended before the BMC's prompt: {}", name(),
                                   lastMessage(said, "ssh")));
      said += piece;
    }
    CO_TRY_OK(co_await tool.write(command + "\r"));
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

std::unique_ptr<ConsoleSource> makeSshConsole(SshOptions options, Clock& clock) {
  return std::make_unique<SshConsole>(std::move(options), clock);
}

}  // namespace muster::bmc
