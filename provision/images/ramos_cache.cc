// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ramos_cache.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "inventory/model/images.h"
#include "provision/images/image_entry.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/ramos.h"
#include "provision/images/ramos_sets.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxRecordBytes = 1u << 20;

/// Size, inode and times of change: a file that was built anew differs in one of them.
std::string stateOfFile(const fs::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return "-;";
  return fmt::format("{}:{}:{}.{}:{}.{};", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

/// The program that asks: another version of it may name another digest for the same files.
const fs::path& thisProgram() {
  static const fs::path program = [] {
    std::error_code error;
    return fs::read_symlink("/proc/self/exe", error);
  }();
  return program;
}

std::vector<fs::path> sourcesOf(const std::vector<AgentFile>& files) {
  std::vector<fs::path> sources;
  sources.reserve(files.size());
  for (const auto& file : files) sources.push_back(file.source);
  return sources;
}

}  // namespace

RamOsCache::RamOsCache(const ImageStoreOptions& options, Architecture architecture, WorkOut files,
                       Now now, Date date)
    : cache_(options.cache),
      agent_binary_(agentFor(options.agent_binary, architecture)),
      system_key_(ramOsKey(options.ram_os, architecture)),
      architecture_(architecture),
      files_(std::move(files)),
      now_(std::move(now)),
      date_(std::move(date)) {}

/// Programs that are not there now may come.
std::string RamOsCache::stateOf(const std::vector<fs::path>& files) const {
  std::string state = stateOfFile(thisProgram()) + stateOfFile(agent_binary_);
  for (const auto& program : agentPrograms(agent_binary_)) state += stateOfFile(program);
  for (const auto& file : files) state += stateOfFile(file);
  return state;
}

/// One for each program that asks about one agent: checkouts share a cache.
fs::path RamOsCache::recordFile() const {
  const auto of = thisProgram().string() + "\n" + agent_binary_.string();
  return cache_ / "ramos" / fmt::format("agent-of-{}.json", io::sha256Hex(of).substr(0, 16));
}

bool RamOsCache::hasSettled(const fs::path& file) const {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return true;  // it is not there, and that is its state
  return std::chrono::system_clock::from_time_t(info.st_ctim.tv_sec) + kSettled < date_();
}

/// Written by this user, by root, or by whom the cache belongs to.
bool RamOsCache::isOurs(const fs::path& record) const {
  struct stat file{}, folder{};
  return ::lstat(record.c_str(), &file) == 0 &&
         ::stat(record.parent_path().c_str(), &folder) == 0 &&
         (file.st_uid == ::geteuid() || file.st_uid == 0 || file.st_uid == folder.st_uid);
}

/// What an earlier process has worked out, if nothing has changed since. A record that cannot be
/// read, or says something else than a digest, is none.
std::optional<RamOsCache::Known> RamOsCache::recorded() const {
  const auto file = recordFile();
  if (!isOurs(file)) return std::nullopt;
  const auto text = io::readFile(file, kMaxRecordBytes);
  if (!text) return std::nullopt;
  const auto record = jsonOrNone(*text, kKeptJson);
  const auto digest = textOf(record, "digest"), state = textOf(record, "state");
  const auto sources = record.is_object() ? record.find("sources") : record.end();
  if (!isDigest(digest) || sources == record.end() || !sources->is_array()) return std::nullopt;
  std::vector<fs::path> files;
  for (const auto& source : *sources) {
    if (!source.is_string()) return std::nullopt;
    files.emplace_back(source.get<std::string>());
  }
  if (stateOf(files) != state) return std::nullopt;
  return Known{ramOsAt(cache_, system_key_, architecture_, digest), state, std::move(files),
               now_()};
}

/// For the next process. Where nothing can be written (a reader's account) it works it out itself.
void RamOsCache::record(const Known& known, const std::string& digest) const {
  std::error_code error;
  if (!fs::is_directory(cache_ / "ramos", error)) return;
  if (!std::ranges::all_of(known.files, [this](const auto& file) { return hasSettled(file); }))
    return;
  auto sources = nlohmann::json::array();
  for (const auto& file : known.files) sources.push_back(file.string());
  const nlohmann::json record{{"digest", digest}, {"state", known.state}, {"sources", sources}};
  (void)io::writeFileUnsynced(recordFile(), jsonText(record));
}

bool RamOsCache::holds(Known& known) const {
  const auto now = now_();
  if (now - known.looked_at < kLookInterval) return true;
  if (!known.answer) return now - known.looked_at < kFailureKept;
  if (stateOf(known.files) != known.state) return false;
  known.looked_at = now;
  return true;
}

bool RamOsCache::isKnown() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && known_ && holds(*known_);
}

Result<RamOsCache::Named> RamOsCache::workOut() const {
  Named named;
  TRY(files, files_(agent_binary_));
  named.files = std::move(files);
  // One that changes while it is read makes this answer end at the next look.
  named.state = stateOf(sourcesOf(named.files));
  TRY(digest, agentFilesDigest(named.files));
  named.digest = std::move(digest);
  named.ram_os = ramOsAt(cache_, system_key_, architecture_, named.digest);
  return named;
}

Result<RamOs> RamOsCache::present() {
  const std::lock_guard lock(mutex_);
  if (known_ && holds(*known_)) return known_->answer;
  if (!known_) known_ = recorded();
  if (known_ && holds(*known_)) return known_->answer;
  auto named = workOut();
  if (!named) {
    known_.emplace(fail(std::move(named).error()), "", std::vector<fs::path>(), now_());
  } else {
    known_.emplace(std::move(named->ram_os), std::move(named->state), sourcesOf(named->files),
                   now_());
    record(*known_, named->digest);
  }
  return known_->answer;
}

}  // namespace muster::provision
