// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/dnf_fetch.h"

#include "base/embedded.h"
#include "base/io/json_lines.h"
#include "base/io/process.h"
#include "base/io/spawn.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/printable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

namespace muster::provision {

std::span<const EmbeddedFile> fetchRecipes();  // node-dnf/fetch.sh and what it needs

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::chrono::minutes kFetchLimit{60};
constexpr std::chrono::seconds kKillLimit{10};
constexpr std::size_t kMaxSaidBytes = 4096, kMaxShownNameBytes = 80;
constexpr std::size_t kMaxAnswerBytes = 64u << 10;
/// A distribution has 60,000 packages; an image a few thousand, and some files of each archive.
constexpr std::size_t kMaxFiles = 100'000;
/// Where rpm keeps its records in the systems it is for; the one of the machine that builds has its
/// own idea.
constexpr const char* kRpmMacros =
    "%_dbpath /var/lib/rpm\n%_db_backend sqlite\n%_install_langs en_US\n";
constexpr std::size_t kMaxWords = 10'000, kMaxWordBytes = 1024;
Result<void> takeWords(const json& from, const char* name, std::vector<std::string>& to) {
  const auto found = from.find(name);
  if (found == from.end() || !found->is_array() || found->size() > kMaxWords)
    return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is no list of names", name));
  for (const auto& word : *found) {
    const auto text = word.is_string() ? word.get<std::string>() : std::string();
    if (text.empty() || text.size() > kMaxWordBytes || text[0] == '-')
      return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" has what is no name", name));
    to.push_back(text);
  }
  return {};
}

/// A path below the cache: "site-0123/packages/a.rpm".
bool isBelow(const fs::path& path) {
  if (path.empty() || path.is_absolute() || path.native().size() > kMaxWordBytes) return false;
  return std::ranges::all_of(path, [](const fs::path& part) {
    return !part.empty() && part != "." && part != ".." &&
           part.native().find('\0') == std::string::npos;
  });
}

/// Lines of the unit, with what comes with them.
class Answers {
 public:
  explicit Answers(int fd) : socket_(fd) {}
  Result<json> next(steady_clock::time_point until) {
    while (true) {
      if (const auto end = bytes_.find('\n'); end != std::string::npos) {
        auto answer = parseJson(bytes_.substr(0, end), kServerJson);
        bytes_.erase(0, end + 1);
        return answer;
      }
      if (bytes_.size() > kMaxAnswerBytes)
        return fail(ErrorCode::Corrupt,
                    fmt::format("a line has more than {} bytes", kMaxAnswerBytes));
      pollfd wait{socket_.fd(), POLLIN, 0};
      const int ready = ::poll(&wait, 1, millisecondsUntil(until));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return fail(ErrorCode::Timeout, "no answer in time");
      TRY(more, socket_.receive(bytes_));
      if (!more)
        return fail(ErrorCode::Unavailable,
                    "it ended without an answer; why: journalctl -u 'muster-fetch@*'");
    }
  }
  FetchSocket& socket() { return socket_; }

 private:
  FetchSocket socket_;
  std::string bytes_;
};

/// Until what it has started has ended, too: that holds its output.
Result<void> runForAsker(const io::Command& command, const FetchSocket& asker) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::Internal, fmt::format("no pipe: {}", std::strerror(errno)));
  const io::Fd reading(ends[0]);
  io::Fd writing(ends[1]);
  const io::Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  TRY(pid,
      io::spawn(command, io::Bond::DiesWithMuster, nothing.get(), writing.get(), writing.get()));
  writing = io::Fd();
  Result<void> done;
  std::string said;
  for (auto until = steady_clock::now() + command.timeout;;) {
    pollfd wait[2] = {{reading.get(), POLLIN, 0}, {done ? asker.fd() : -1, POLLRDHUP, 0}};
    const int ready = ::poll(wait, 2, millisecondsUntil(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || wait[1].revents != 0) {
      if (!done) break;  // it was killed, and something of it lives
      done = ready > 0 ? fail(ErrorCode::Unavailable, "who asked for packages has gone")
                       : fail(ErrorCode::Timeout, command.str() + " did not end in time");
      ::kill(-pid, SIGKILL);
      until = steady_clock::now() + kKillLimit;
      continue;
    }
    char piece[4096];
    const auto got = ::read(reading.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said.append(piece, static_cast<std::size_t>(got));
    if (said.size() > 2 * kMaxSaidBytes) said.erase(0, said.size() - kMaxSaidBytes);
  }
  ::kill(-pid, SIGKILL);
  const auto code = io::reap(pid, 0).value_or(0);
  TRY_OK(std::move(done));
  if (code == 0) return {};
  if (said.size() > kMaxSaidBytes) said.erase(0, said.size() - kMaxSaidBytes);
  while (said.ends_with('\n')) said.pop_back();
  return fail(ErrorCode::Internal,
              fmt::format("{} ended with code {}: {}", command.str(), code, said));
}

Result<void> takeFile(FetchSocket& socket, const fs::path& name, const fs::path& cache) {
  const auto fetched = socket.takeDescriptor();
  if (!fetched || !isBelow(name))
    return fail(ErrorCode::Corrupt,
                fmt::format("it handed over \"{}\", which is no file of a cache",
                            printable(name.string().substr(0, kMaxShownNameBytes))));
  const auto to = cache / name;
  TRY_OK(io::makeDirs(to.parent_path()));
  TRY_OK(copyFetched(fetched->get(), to));
  return {};
}

Result<void> ask(const fs::path& socket, uid_t owner, const DnfRequest& request,
                 const fs::path& cache) {
  TRY(line, dialFetchUnit(socket, owner));
  Answers answers(line.get());
  TRY_OK(answers.socket().send(jsonText(json{{"dnf", toJson(request)}}) + "\n"));
  const auto until = steady_clock::now() + kFetchLimit;
  for (std::size_t files = 0;;) {
    TRY(answer, answers.next(until));
    if (const auto code = textOf(answer, "error"); !code.empty())
      return fail(io::errorCodeOf(code), textOf(answer, "text"));
    const auto file = textOf(answer, "file");
    if (file.empty() && !flagOf(answer, "done"))
      return fail(ErrorCode::Corrupt,
                  fmt::format("it answered with what is no answer: {}",
                              printable(jsonText(answer).substr(0, kMaxShownNameBytes))));
    if (!file.empty()) {
      if (++files > kMaxFiles) return fail(ErrorCode::Corrupt, "it does not end");
      TRY_OK(takeFile(answers.socket(), file, cache));
    }
    if (flagOf(answer, "done")) return {};
  }
}

}  // namespace

json toJson(const DnfRequest& request) {
  return {{"configuration", request.configuration},
          {"release", request.release},
          {"packages", request.packages},
          {"modules", request.modules}};
}

Result<DnfRequest> parseDnfRequest(const json& request) {
  DnfRequest out{.configuration = textOf(request, "configuration"),
                 .release = textOf(request, "release"),
                 .packages = {},
                 .modules = {}};
  if (out.configuration.empty() || out.release.empty() || out.release[0] == '-')
    return fail(ErrorCode::InvalidInput, "dnf is asked with a configuration and a release");
  TRY_OK(takeWords(request, "packages", out.packages));
  TRY_OK(takeWords(request, "modules", out.modules));
  return out;
}

Result<void> writeRpmMacros(const std::filesystem::path& home) {
  return io::writeFileAtomic(home / ".rpmmacros", kRpmMacros);
}

Result<void> checkDnf(const std::string& release) {
  // Where its log cannot be written, as in a unit, it fails for this question alone.
  const auto there = io::runBlocking({.program = "dnf", .args = {"--version"}});
  if (there || there.error().code() != ErrorCode::NotFound) return {};
  return fail(
      ErrorCode::NotFound,
      fmt::format(
          "a system of release {} is installed by dnf, which is not here: apt-get install dnf rpm",
          release));
}

fs::path dnfCacheOf(const fs::path& root) { return root / "var/cache/dnf"; }

Result<void> fetchDnfCache(const fs::path& socket, uid_t owner, const DnfRequest& request,
                           const fs::path& cache) {
  auto done = ask(socket, owner, request, cache);
  if (!done) return fail(std::move(done).error().within("the fetch unit (muster-fetch@.service)"));
  return done;
}

Result<void> downloadForDnf(const FetchSocket& asker, const DnfRequest& request,
                            const fs::path& folder, const std::map<std::string, std::string>& env) {
  TRY_OK(checkDnf(request.release));
  for (const EmbeddedFile& file : fetchRecipes())
    TRY_OK(io::writeFileUnsynced(folder / std::string(file.name), file.content));
  TRY_OK(io::writeFileUnsynced(folder / "dnf.conf", request.configuration));
  TRY_OK(writeRpmMacros(folder));
  TRY_OK(io::makeDirs(folder / "root"));
  io::Command command{
      .program = "sh",  // the folder may be on a file system that runs nothing (noexec)
      .args = {(folder / "fetch.sh").string(), (folder / "root").string(),
               (folder / "dnf.conf").string(), request.release},
      .env = env};
  command.args.insert(command.args.end(), request.packages.begin(), request.packages.end());
  command.env["HOME"] = folder.string();
  command.env["PYTHONHASHSEED"] = "0";  // dnf hands over its sets in the order of Python's hashes
  if (!request.modules.empty())
    command.env["MUSTER_MODULES"] = fmt::format("{}", fmt::join(request.modules, " "));
  command.timeout = kFetchLimit;
  return runForAsker(command, asker);
}

Result<void> handOverDnfCache(FetchSocket& asker, const fs::path& folder) {
  const auto cache = dnfCacheOf(folder / "root");
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(cache, error)) {
    // What lies beside the archives' folders dnf makes of them, and makes again.
    if (!entry.is_regular_file(error) || entry.is_symlink(error) ||
        entry.path().parent_path() == cache)
      continue;
    const io::Fd file(::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file.valid())
      return fail(ErrorCode::Internal,
                  fmt::format("cannot read {}: {}", entry.path().string(), std::strerror(errno)));
    ::unlink(entry.path().c_str());
    const json answer = {{"file", entry.path().lexically_relative(cache).string()}};
    TRY_OK(asker.send(jsonText(answer) + "\n", file.get()));
  }
  return asker.send(jsonText(json{{"done", true}}) + "\n");
}

}  // namespace muster::provision
