// SPDX-License-Identifier: Apache-2.0
// params {name, value, unit, unit_name, packages, source, at, types, options, read_mb_s,
// write_mb_s}, or {name, remove: true}
#include "agent/tasks/storage.h"

#include "agent/tasks/systemd.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/json_reader.h"
#include "wire/task_params.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kToolLimit{180};
constexpr std::chrono::seconds kSpeedLimit{20};
constexpr std::uint64_t kSpeedBytes = 1ull << 30;
constexpr std::size_t kBlockBytes = 4u << 20;
constexpr std::size_t kAlignBytes = 4096;
constexpr std::size_t kMaxStateBytes = 64u << 10;
constexpr std::size_t kMaxOptions = 64;
constexpr double kMegabyte = 1e6;
constexpr std::string_view kUnits = "etc/systemd/system", kReadOnly = "ro";

/// Options that are for mount(8) and systemd only; the kernel never shows them.
constexpr std::string_view kUnseen[] = {"_netdev", "nofail", "auto", "noauto", "defaults",
                                        "user",    "nouser", "bg",   "fg",     "retry="};

using Params = wire::MountParams;

constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:\\-";
bool plain(const std::string& text) {
  return !text.empty() && text.find_first_not_of(kNameLetters) == std::string::npos &&
         text[0] != '.';
}

WantedMount mountOf(const Params& params) {
  return {params.source, params.at, params.types, params.options};
}

Result<Params> parse(const nlohmann::json& json) {
  TRY(out, wire::parseMountParams(jsonText(json)));
  if (!plain(out.name)) return fail(ErrorCode::InvalidInput, "params.name is no name");
  if (!plain(out.unit_name) || !out.unit_name.ends_with(".mount"))
    return fail(ErrorCode::InvalidInput, "params.unit_name is no mount unit");
  if (!out.at.starts_with('/') || out.at.size() < 2 || out.at.find("/..") != std::string::npos)
    return fail(ErrorCode::InvalidInput, "params.at is no mount point");
  return std::move(out);
}

std::string unescaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; ++at)
    if (at + 3 < text.size()) {
      char* end = nullptr;
      const auto octal = text.substr(at + 1, 3);
      const auto code = std::strtol(octal.c_str(), &end, 8);
      if (*end == '\0') text.replace(at, 4, 1, static_cast<char>(code));
    }
  return text;
}

std::string oneLine(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  auto text = io::readFile(path, kMaxStateBytes);
  if (!text) return {};
  text->erase(text->find_last_not_of(" \n") + 1);
  return *text;
}

std::vector<MountEntry> mountsOf(const fs::path& root) {
  const auto text = io::readFile(root / "proc/self/mounts", 4u << 20);
  return text ? parseMounts(*text) : std::vector<MountEntry>();
}

Async<void> tool(TaskTools tools, std::string program, std::vector<std::string> args) {
  CO_TRY_OK(co_await runTool(tools, std::move(program), std::move(args), kToolLimit));
  co_return Result<void>();
}

fs::path stateOf(const fs::path& root, const std::string& name) {
  return root / "var/lib/muster/storage" / name;
}

/// Units that muster wrote for this storage when it was declared at another place. By their first
/// line: a place that another storage has taken over meanwhile is that one's.
std::vector<std::string> oldUnits(const fs::path& root, const Params& params) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / kUnits, error)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".mount") && name != params.unit_name &&
        oneLine(entry.path()).starts_with("# Written by muster for storage " + params.name + ";"))
      out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Async<void> leaveOldPlaces(TaskTools tools, Params params) {
  for (const auto& unit : oldUnits(tools.root, params)) {
    std::vector<std::string> disable = {"disable", "--now", unit};
    if (const auto left = co_await tool(tools, "systemctl", std::move(disable)); !left) {
      const auto words = co_await lastWords(tools, unit);
      co_return fail(left.error().code(),
                     fmt::format("{} was mounted by {} before, which cannot be ended: {}",
                                 params.name, unit, words));
    }
    std::error_code ignored;
    fs::remove(tools.root / kUnits / unit, ignored);
  }
  co_return Result<void>();
}

Async<void> mountUnit(TaskTools tools, Params params) {
  const auto file = tools.root / kUnits / params.unit_name;
  std::error_code error;
  if (oneLine(file) != params.unit.substr(0, params.unit.find_last_not_of(" \n") + 1)) {
    fs::remove(stateOf(tools.root, params.name),
               error);  // what is mounted is not what the file says, until it has been mounted anew
    CO_TRY_OK(io::makeDirs(file.parent_path()));
    CO_TRY_OK(io::writeFileAtomic(file, params.unit));
  }
  CO_TRY_OK(io::makeDirs(tools.root / params.at.substr(1)));
  std::vector<std::string> reload = {"daemon-reload"};
  CO_TRY_OK(co_await tool(tools, "systemctl", std::move(reload)));
  std::vector<std::string> enable = {"enable", params.unit_name};
  CO_TRY_OK(co_await tool(tools, "systemctl", std::move(enable)));
  // Made anew where it may be of another text than the unit's: an option that was taken away shows
  // nowhere. The node is drained.
  const bool as_written = fs::exists(stateOf(tools.root, params.name), error) &&
                          mountProblem(mountsOf(tools.root), mountOf(params)).empty();
  std::vector<std::string> start = {as_written ? "start" : "restart", params.unit_name};
  const auto started = co_await tool(tools, "systemctl", std::move(start));
  if (started) co_return Result<void>();
  auto reading =
      lastWords(tools, params.unit_name);  // systemctl itself says no more than that it failed
  const auto words = co_await std::move(reading);
  co_return fail(started.error().code(),
                 fmt::format("{} cannot be mounted at {}: {}", params.source, params.at, words));
}

class DirectFile {
 public:
  static Result<DirectFile> make(const fs::path& folder) {
    DirectFile file;
    file.path_ = folder / fmt::format(".muster-speed-{}", ::getpid());
    file.fd_ =
        io::Fd(::open(file.path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600));
    if (!file.fd_.valid())
      return fail(ErrorCode::Unavailable,
                  fmt::format("{}: {}", file.path_.string(), std::strerror(errno)));
    ::unlink(file.path_.c_str());  // at once: whatever happens, nothing stays
    return file;
  }
  int get() const { return fd_.get(); }

 private:
  fs::path path_;
  io::Fd fd_;
};

}  // namespace

std::vector<MountEntry> parseMounts(std::string_view text) {
  std::vector<MountEntry> out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    MountEntry mount;
    std::string options;
    if (!(words >> mount.source >> mount.at >> mount.type >> options)) continue;
    mount.source = unescaped(mount.source), mount.at = unescaped(mount.at);
    std::istringstream list(options);
    for (std::string option; std::getline(list, option, ',');) mount.options.push_back(option);
    out.push_back(std::move(mount));
  }
  return out;
}

std::string mountProblem(const std::vector<MountEntry>& mounts, const WantedMount& wanted) {
  const auto at = std::find_if(mounts.rbegin(), mounts.rend(), [&](const MountEntry& mount) {
    return mount.at == wanted.at;
  });  // the last one is on top
  if (at == mounts.rend()) return "nothing is mounted at " + wanted.at;
  std::error_code error;
  const bool same_device = at->source.starts_with("/dev/") && wanted.source.starts_with("/dev/") &&
                           fs::equivalent(at->source, wanted.source, error);
  if (at->source != wanted.source && at->source != "/dev/" + wanted.source && !same_device)
    return fmt::format("{} is mounted at {}, declared is {}", at->source, wanted.at, wanted.source);
  std::istringstream types(wanted.types);
  bool type_fits = false;
  for (std::string type; types >> type;) type_fits = type_fits || type == at->type;
  if (!type_fits)
    return fmt::format("{} has the type {}, declared is {}", wanted.at, at->type, wanted.types);
  for (const auto& option : wanted.options) {
    const bool unseen =
        std::any_of(std::begin(kUnseen), std::end(kUnseen), [&](std::string_view word) {
          return word.ends_with('=') ? option.starts_with(word) : option == word;
        });
    if (unseen || option.starts_with("x-") ||
        std::find(at->options.begin(), at->options.end(), option) != at->options.end())
      continue;
    return fmt::format("{} is mounted without {}", wanted.at, option);
  }
  const auto has = [](const std::vector<std::string>& options) {
    return std::find(options.begin(), options.end(), kReadOnly) != options.end();
  };
  if (has(at->options) && !has(wanted.options))
    return fmt::format("{} is mounted read-only, which is not declared", wanted.at);
  return {};
}

Result<Speed> measureSpeed(const fs::path& folder, std::uint64_t bytes,
                           std::chrono::milliseconds limit) {
  TRY(file, DirectFile::make(folder));
  const std::unique_ptr<void, void (*)(void*)> block(std::aligned_alloc(kAlignBytes, kBlockBytes),
                                                     std::free);
  std::memset(block.get(), 0x5a, kBlockBytes);
  std::uint64_t written = 0;
  auto run = [&](auto step, std::uint64_t most) -> Result<double> {
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t done = 0;
    while (done < most && std::chrono::steady_clock::now() - start < limit) {
      const auto got = step(done);
      if (got <= 0)
        return fail(ErrorCode::Unavailable,
                    fmt::format("direct I/O in {}: {}", folder.string(),
                                got == 0 ? "it ends early" : std::strerror(errno)));
      done += static_cast<std::uint64_t>(got);
    }
    if (most == bytes && written == 0) written = done;
    const auto seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return static_cast<double>(done) / kMegabyte / std::max(seconds, 1e-9);
  };
  TRY(write, run(
                 [&](std::uint64_t at) {
                   return ::pwrite(file.get(), block.get(), kBlockBytes, static_cast<off_t>(at));
                 },
                 bytes));
  if (::fdatasync(file.get()) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("{}: {}", folder.string(), std::strerror(errno)));
  TRY(read, run(
                [&](std::uint64_t at) {
                  return ::pread(file.get(), block.get(), kBlockBytes, static_cast<off_t>(at));
                },
                written));
  return Speed{write, read};
}

std::string storageProbe(const fs::path& root, const std::string& name) {
  const auto json = jsonOrNone(oneLine(stateOf(root, name)), kKeptJson);
  if (!json.is_object()) return {};
  wire::JsonReader reader(json, "storage");
  const auto value = reader.text("value", wire::kMaxNameBytes);
  const WantedMount wanted{reader.text("source", wire::kMaxNameBytes),
                           reader.text("at", wire::kMaxNameBytes),
                           reader.text("types", wire::kMaxNameBytes),
                           wire::readTexts(reader, "options", kMaxOptions, wire::kMaxNameBytes)};
  if (!reader.finish()) return {};
  const auto problem = mountProblem(mountsOf(root), wanted);
  return problem.empty() ? value : "wrong: " + problem;
}

/// What muster put there, and nothing else: its units, which ends what they mount, and its note.
/// Mount point and data stay.
static Async<nlohmann::json> removeStorage(TaskTools tools, nlohmann::json json) {
  CO_TRY(removal, wire::parseMountRemoval(jsonText(json)));
  Params params;
  params.name = removal.name;
  if (!plain(params.name)) co_return fail(ErrorCode::InvalidInput, "params.name is no name");
  CO_TRY_OK(co_await leaveOldPlaces(tools, params));
  std::error_code error;
  fs::remove(stateOf(tools.root, params.name), error);
  std::vector<std::string> reload = {"daemon-reload"};
  CO_TRY_OK(co_await tool(tools, "systemctl", std::move(reload)));
  co_return nlohmann::json{{"removed", params.name}};
}

Async<nlohmann::json> setStorage(TaskTools tools, nlohmann::json json, TaskContextPtr context) {
  if (json.is_object() && json.value("remove", nlohmann::json(false)) == true) {
    co_return co_await removeStorage(std::move(tools), std::move(json));
  }
  CO_TRY(params, parse(json));
  wire::DriverParams driver;
  driver.name = "storage-" + params.name;
  driver.packages = params.packages;
  CO_TRY_OK(co_await installDriver(tools, std::move(driver), context));
  context->progress(0.5, "mounting " + params.at);
  CO_TRY_OK(co_await leaveOldPlaces(tools, params));
  CO_TRY_OK(co_await mountUnit(tools, params));
  if (auto problem = mountProblem(mountsOf(tools.root), mountOf(params)); !problem.empty())
    co_return fail(ErrorCode::Corrupt, problem);
  nlohmann::json state{{"value", params.value},
                       {"source", params.source},
                       {"at", params.at},
                       {"types", params.types},
                       {"options", params.options}};
  if (params.read_mb_s > 0 || params.write_mb_s > 0) {
    context->progress(0.7, "measuring " + params.at);
    auto measuring = std::make_shared<TaskContext>("speed", kSpeedLimit * 3);
    std::function<Result<Speed>()> measure = [folder = tools.root / params.at.substr(1)] {
      return measureSpeed(folder, kSpeedBytes, kSpeedLimit);
    };
    CO_TRY(speed, co_await offloadFor<Speed>(tools.workers, measuring, std::move(measure)));
    state["write_mb_s"] = speed.write_mb_s, state["read_mb_s"] = speed.read_mb_s;
    if (speed.write_mb_s < params.write_mb_s || speed.read_mb_s < params.read_mb_s)
      co_return fail(
          ErrorCode::Corrupt,
          fmt::format("{} writes {:.0f} MB/s and reads {:.0f} MB/s, declared are {} and {}",
                      params.at, speed.write_mb_s, speed.read_mb_s, params.write_mb_s,
                      params.read_mb_s));
  }
  const auto file = stateOf(tools.root, params.name);
  CO_TRY_OK(io::makeDirs(file.parent_path()));
  CO_TRY_OK(io::writeFileAtomic(file, jsonText(state)));
  co_return state;
}

}  // namespace muster::agent
