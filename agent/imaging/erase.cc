// SPDX-License-Identifier: Apache-2.0
// Which disks are erased, in what order, and what is told of it.
#include "agent/imaging/erase.h"

#include "agent/imaging/storage_plan.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "base/json_output.h"
#include "wire/task_reason.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <thread>

namespace muster::agent {

namespace {

constexpr std::chrono::seconds kToolLimit{6 * 3600};  ///< a large disk formats itself for long
constexpr std::size_t kToolOutputBytes = 1u << 20;

std::string names(const std::vector<DiskInfo>& disks) {
  std::vector<std::string> words;
  for (const auto& disk : disks) words.push_back(disk.str());
  return words.empty() ? "no disk" : fmt::format("{}", fmt::join(words, ", "));
}

bool isOneOf(const std::vector<DiskInfo>& disks, const DiskInfo& disk) {
  return std::any_of(disks.begin(), disks.end(),
                     [&disk](const DiskInfo& one) { return one.path == disk.path; });
}

/// Disks that share a controller stand in one group: what works on a controller must not run twice
/// at once.
std::vector<std::vector<std::size_t>> groupsOf(const std::vector<DiskInfo>& disks) {
  std::map<std::string, std::vector<std::size_t>> by_controller;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    const std::string controller = nvmeController(disks[i].path);
    by_controller[controller.empty() ? disks[i].path.string() : controller].push_back(i);
  }
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [name, members] : by_controller) groups.push_back(std::move(members));
  return groups;
}

/// Whether no namespace that stays would go with this disk.
bool coversController(const DiskInfo& disk, const std::vector<DiskInfo>& all,
                      const std::vector<DiskInfo>& chosen) {
  const std::string controller = nvmeController(disk.path);
  return std::none_of(all.begin(), all.end(), [&](const DiskInfo& other) {
    return nvmeController(other.path) == controller && !isOneOf(chosen, other);
  });
}

bool isBlockDevice(const std::filesystem::path& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISBLK(info.st_mode);
}

Result<DiskClaim> claimDisk(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return fail(ErrorCode::NotFound, fmt::format("{} is gone", path.string()));
  if (!isBlockDevice(path)) return DiskClaim();
  // On a block device O_EXCL asks for the only claim: mounted, in an array or mapped, it is
  // refused.
  io::Fd fd(::open(path.c_str(), O_RDWR | O_EXCL | O_CLOEXEC));
  if (!fd.valid())
    return fail(
        ErrorCode::Conflict,
        fmt::format("{} cannot be had alone ({}): it is mounted, part of an array or mapped",
                    path.string(), std::strerror(errno)));
  return DiskClaim(std::make_shared<io::Fd>(std::move(fd)));
}

}  // namespace

bool EraseReport::complete() const {
  return !disks.empty() && std::none_of(disks.begin(), disks.end(),
                                        [](const DiskErasure& one) { return one.method.empty(); });
}

std::string EraseReport::json() const {
  auto list = nlohmann::json::array();
  for (const auto& one : disks)
    list.push_back({{"disk", one.disk.str()},
                    {"serial", one.disk.serial},
                    {"wwn", one.disk.wwn},
                    {"size_bytes", one.disk.size_bytes},
                    {"method", one.method},
                    {"level", one.level},
                    {"tried", one.tried},
                    {"bytes_erased", one.bytes},
                    {"places_checked", one.places_checked},
                    {"seconds", one.seconds},
                    {"fault", one.fault}});
  return jsonText(nlohmann::json{
      {"node_serial", node_serial}, {"complete", complete()}, {"disks", list}, {"left", left}});
}

Result<std::vector<DiskInfo>> chooseErased(const wire::EraseParams& params,
                                           const std::vector<DiskInfo>& disks,
                                           const std::string& machine_serial) {
  if (!params.wipe_allowed)
    return fail(ErrorCode::Denied,
                "nothing is erased: the plan did not say that this node may be wiped");
  if (machine_serial.empty())
    return fail(ErrorCode::Denied,
                "nothing is erased: this machine's firmware tells no serial, so nobody can be sure "
                "that it is the one that was meant");
  if (params.node_serial != machine_serial)
    return fail(ErrorCode::Denied,
                fmt::format("nothing is erased: the serial {} was typed, this machine is {}",
                            params.node_serial, machine_serial));
  std::vector<DiskInfo> chosen;
  if (params.disk_serials.empty()) {
    std::copy_if(disks.begin(), disks.end(), std::back_inserter(chosen),
                 [](const DiskInfo& disk) { return !disk.removable; });
    if (chosen.empty())
      return fail(ErrorCode::NotFound, "this machine has no disk that is built in");
  }
  for (const auto& serial : params.disk_serials) {
    const auto fits = std::count_if(disks.begin(), disks.end(), [&serial](const DiskInfo& disk) {
      return disk.serial == serial;
    });
    if (serial.empty() || fits == 0)
      return fail(ErrorCode::NotFound, fmt::format("no disk has the serial \"{}\"; there are: {}",
                                                   serial, names(disks)));
    if (fits > 1)
      return fail(ErrorCode::Conflict,
                  fmt::format("{} disks have the serial {}: {}", fits, serial, names(disks)));
    const auto disk = *std::find_if(disks.begin(), disks.end(), [&serial](const DiskInfo& one) {
      return one.serial == serial;
    });
    if (!isOneOf(chosen, disk)) chosen.push_back(disk);
  }
  if (chosen.size() > wire::kMaxErasedDisks)
    return fail(ErrorCode::InvalidInput, fmt::format("{} disks are more than {}; name some of them",
                                                     chosen.size(), wire::kMaxErasedDisks));
  return chosen;
}

Result<EraseReport> eraseDisks(const wire::EraseParams& params, const std::vector<DiskInfo>& disks,
                               const std::string& machine_serial, const EraseTools& tools) {
  auto chosen_disks = chooseErased(params, disks, machine_serial);
  if (!chosen_disks) return wire::untouched(std::move(chosen_disks).error());
  const auto& chosen = *chosen_disks;
  for (const auto& disk : chosen) tools.release(disk);
  std::vector<DiskClaim> claims;  // to the end
  for (const auto& disk : chosen) {
    TRY(claim, tools.claim(disk.path));
    claims.push_back(std::move(claim));
  }

  EraseReport report;
  report.node_serial = machine_serial;
  report.disks.resize(chosen.size());
  for (const auto& disk : disks)
    if (!isOneOf(chosen, disk)) report.left.push_back(disk.str());

  std::mutex mutex;
  std::vector<double> fractions(chosen.size(), 0);
  const auto notify = [&](std::size_t i, double fraction, const std::string& text) {
    double all = 0;
    {
      const std::lock_guard guard(mutex);
      fractions[i] = fraction;
      for (const double one : fractions) all += one;
    }
    tools.progress(all / static_cast<double>(chosen.size()), text);
  };
  const auto groups = groupsOf(chosen);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t group = next++; group < groups.size(); group = next++)
      for (const std::size_t i : groups[group]) {
        report.disks[i] = eraseDisk(
            chosen[i], coversController(chosen[i], disks, chosen), tools,
            [&notify, i](double fraction, const std::string& text) { notify(i, fraction, text); });
        notify(i, 1,
               fmt::format("{}: {}", chosen[i].str(),
                           report.disks[i].method.empty() ? report.disks[i].fault
                                                          : "erased by " + report.disks[i].method));
      }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(kDisksAtOnce, groups.size()); ++i)
      threads.emplace_back(work);
    work();
  }
  return report;
}

EraseTools eraseTools() {
  EraseTools tools;
  tools.run = [](const std::string& program, const std::vector<std::string>& args) {
    io::Command command{.program = program, .args = args};
    command.timeout = kToolLimit;
    command.max_output_bytes = kToolOutputBytes;
    command.env = {{"LC_ALL", "C"}};
    return io::runChecked(command);
  };
  tools.open = [](const std::filesystem::path& path) { return openBlockTarget(path); };
  tools.release = [](const DiskInfo& disk) {
    if (isBlockDevice(disk.path)) releaseDisk(disk);
  };
  tools.claim = claimDisk;
  return tools;
}

}  // namespace muster::agent
