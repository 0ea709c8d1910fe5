// SPDX-License-Identifier: Apache-2.0
// NVMe disks: what they say of themselves, how fast they read, and whether a file comes back as it
// was written.
#include "validate/checks/check_row.h"
#include "validate/checks/disk_evaluation.h"

#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

namespace muster::validate {
namespace {

constexpr std::string_view kBlocks = "sys/class/block";
constexpr std::chrono::seconds kAskLimit{30};
constexpr std::chrono::seconds kWriteLimit{300};
constexpr double kWriteMebibytes = 1024, kShareOfFree = 0.05, kLeastMebibytes = 16;
constexpr const char* kScratch = ".muster-disk-test";
constexpr const char* kScratchFile = "data";
constexpr int kDeepestStack = 8;  ///< LVM on LUKS on RAID

/// "nvme0" or, with `spaces`, "nvme0n1". Nothing else: beside nvme0n1 the kernel shows hidden paths
/// (nvme0c0n1) that have no device node.
bool isNvme(std::string_view name, bool spaces) {
  const auto digits = [&name](std::string_view before) {
    if (!name.starts_with(before)) return false;
    name.remove_prefix(before.size());
    const auto end = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(end);
    return end > 0;
  };
  return digits("nvme") && (!spaces || digits("n")) && name.empty();
}

std::vector<std::string> namespacesOf(const Host& host) {
  auto names = host.names("sys/block");
  std::erase_if(names, [](const auto& name) { return !isNvme(name, true); });
  return names;
}

Verdict concluded(Verdict verdict, const std::vector<std::string>& wrong,
                  const std::vector<std::string>& unknown, std::string good) {
  verdict.status = !wrong.empty()     ? wire::CheckStatus::Fail
                   : !unknown.empty() ? wire::CheckStatus::NoData
                                      : wire::CheckStatus::Pass;
  auto words = wrong;
  words.insert(words.end(), unknown.begin(), unknown.end());
  verdict.text = words.empty() ? std::move(good) : fmt::format("{}", fmt::join(words, "; "));
  return verdict;
}

Result<std::string> askNvme(const Host& host, const char* what, const std::string& disk) {
  io::Command command;
  command.program = "nvme", command.args = {what, "/dev/" + disk, "--raw-binary"},
  command.timeout = kAskLimit;
  TRY(done, host.run(command));
  if (done.code != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("nvme {} ended with {}: {}", what, done.code, done.err.substr(0, 200)));
  return done.out;
}

struct LookedAt {
  NvmeHealth health;
  std::optional<double> warning_c;
};
Result<LookedAt> scanContent(const Host& host, const std::string& disk) {
  TRY(page, askNvme(host, "smart-log", disk));
  TRY(identity, askNvme(host, "id-ctrl", disk));
  TRY(health, parseNvmeHealth(page));
  TRY(warning, parseNvmeWarningC(identity));
  return LookedAt{health, warning};
}

/// Reading cannot harm, twice over: fio refuses to write at all, and refuses mounted devices in any
/// case.
io::Command fioRead(const std::string& disk, double seconds) {
  io::Command fio;
  fio.program = "fio";
  fio.args = {"--name=read",
              "--filename=/dev/" + disk,
              "--readonly",
              "--allow_mounted_write=0",
              "--rw=read",
              "--bs=1M",
              "--iodepth=32",
              "--ioengine=libaio",
              "--direct=1",
              "--time_based",
              fmt::format("--runtime={:.0f}", std::max(seconds, 1.0)),
              "--output-format=json"};
  fio.timeout = std::chrono::seconds(static_cast<long>(seconds) + 30);
  return fio;
}

/// The namespaces that a block device lies on, through partitions, RAID, LVM and encryption.
void addNvmeBelow(const Host& host, const std::string& device, std::set<std::string>& found,
                  int depth) {
  if (depth > kDeepestStack) return;
  if (isNvme(device, true)) found.insert(device);
  for (const auto& below : host.names(std::filesystem::path(kBlocks) / device / "slaves"))
    addNvmeBelow(host, below, found, depth + 1);
  std::error_code error;
  if (!std::filesystem::exists(host.root / kBlocks / device / "partition", error)) return;
  const auto whole = std::filesystem::canonical(host.root / kBlocks / device, error)
                         .parent_path()
                         .filename()
                         .string();
  if (!error && isNvme(whole, true)) found.insert(whole);
}

struct Place {
  std::filesystem::path folder;  ///< where a file system is mounted
  std::set<std::string> disks;
};

/// Writable file systems of disks on NVMe, each once.
std::vector<Place> placesOn(const Host& host) {
  static const std::set<std::string_view> kKinds{"ext4", "xfs", "btrfs"};
  std::vector<Place> places;
  std::set<std::string> seen;
  std::istringstream mounts(host.text("proc/mounts"));
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, folder, kind, options;
    if (!(words >> device >> folder >> kind >> options)) continue;
    std::erase_if(places, [&folder](const auto& place) {
      return place.folder == folder;
    });  // this one lies over it
    if (!device.starts_with("/dev/") || !kKinds.contains(kind) ||
        folder.find_first_of("\\:") != std::string::npos)
      continue;  // fio splits names at ':'
    if ((options != "rw" && !options.starts_with("rw,")) || !seen.insert(device).second) continue;
    std::error_code error;
    const auto real = std::filesystem::canonical(host.root / device.substr(1),
                                                 error);  // /dev/mapper/x is a link to /dev/dm-0
    Place place{folder, {}};
    addNvmeBelow(host, error ? device.substr(5) : real.filename().string(), place.disks, 0);
    if (!place.disks.empty()) places.push_back(std::move(place));
  }
  return places;
}

/// A folder of our own for one file; what it takes away again is that file and the folder, if it is
/// empty then.
class Scratch {
 public:
  static Result<Scratch> make(const std::filesystem::path& mount) {
    Scratch scratch(mount / kScratch);
    scratch.remove();  // of a run that was killed
    if (::mkdir(scratch.folder_.c_str(), 0700) != 0)
      return fail(
          ErrorCode::Unavailable,
          fmt::format("{} cannot be made: {}", scratch.folder_.string(), std::strerror(errno)));
    scratch.made_ = true;
    struct stat of_mount{}, of_folder{};
    if (::stat(mount.c_str(), &of_mount) != 0 ||
        ::lstat(scratch.folder_.c_str(), &of_folder) != 0 || of_mount.st_dev != of_folder.st_dev)
      return fail(ErrorCode::Conflict,
                  fmt::format("{} is not of the file system that is mounted at {}",
                              scratch.folder_.string(), mount.string()));
    return scratch;
  }
  Scratch(Scratch&& other) noexcept
      : folder_(std::move(other.folder_)), made_(std::exchange(other.made_, false)) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (made_) remove();
  }
  std::filesystem::path file() const { return folder_ / kScratchFile; }

 private:
  explicit Scratch(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void remove() const {
    struct stat found{};
    if (::lstat(file().c_str(), &found) == 0 && S_ISREG(found.st_mode)) ::unlink(file().c_str());
    ::rmdir(folder_.c_str());
  }

  std::filesystem::path folder_;
  bool made_ = false;
};

/// A file of a fresh folder and nothing else: fio may create it, and writes to no device that is
/// mounted.
io::Command fioWrite(const std::filesystem::path& file, double mebibytes) {
  io::Command fio;
  fio.program = "fio";
  fio.args = {"--name=write",
              "--filename=" + file.string(),
              "--allow_mounted_write=0",
              "--rw=write",
              fmt::format("--size={:.0f}M", mebibytes),
              "--bs=1M",
              "--iodepth=16",
              "--ioengine=libaio",
              "--direct=1",
              "--end_fsync=1",
              "--verify=crc32c",
              "--do_verify=1",
              "--verify_fatal=1",
              "--output-format=json"};
  fio.timeout = kWriteLimit;
  return fio;
}

/// How much to write: never more than a small share of what is free.
Result<double> mebibytesFor(const std::filesystem::path& mount, double wanted) {
  struct statvfs free{};
  if (::statvfs(mount.c_str(), &free) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("{}: {}", mount.string(), std::strerror(errno)));
  const double share = kShareOfFree * static_cast<double>(free.f_bavail) *
                       static_cast<double>(free.f_frsize) / (1 << 20);
  if (share < kLeastMebibytes)
    return fail(ErrorCode::Unavailable,
                fmt::format("{} is too full: a twentieth of what is free is {:.0f} MiB",
                            mount.string(), share));
  return std::floor(std::min(wanted, share));
}

Result<FioRates> writeAndReadBack(const Host& host, const Place& place, double wanted) {
  const auto mount = host.root / place.folder.relative_path();
  TRY(mebibytes, mebibytesFor(mount, wanted));
  TRY(scratch, Scratch::make(mount));
  TRY(done, host.run(fioWrite(scratch.file(), mebibytes)));
  if (done.code != 0)
    return fail(ErrorCode::Corrupt,
                fmt::format("fio ended with {}: {}", done.code, done.err.substr(0, 300)));
  return parseFio(done.out, true, true);
}

}  // namespace

Verdict checkDiskHealth(const nlohmann::json&, const Host& host) {
  std::vector<std::string> wrong, unknown;
  Verdict verdict;
  std::size_t disks = 0;
  for (const auto& disk : host.names("sys/class/nvme")) {
    const auto transport = host.line("sys/class/nvme/" + disk + "/transport");
    if (!isNvme(disk, false) || (!transport.empty() && transport != "pcie"))
      continue;  // others are elsewhere
    ++disks;
    const auto serial = host.line("sys/class/nvme/" + disk + "/serial");
    const auto seen = scanContent(host, disk);
    if (!seen) {
      unknown.push_back(fmt::format("{} (serial {}): {}", disk, serial, seen.error().str()));
      continue;
    }
    for (const auto& trouble : troublesOf(seen->health, seen->warning_c))
      wrong.push_back(fmt::format("{} (serial {}): {}", disk, serial, trouble));
    const auto& health = seen->health;
    // Wear is evidence and no measurement: it differs and grows where nothing is wrong, and a
    // report would call that drift.
    for (const auto& [name, value] : {std::pair("temperature_c", health.temperature_c),
                                      std::pair("spare_percent", health.spare_percent),
                                      std::pair("media_errors", health.media_errors)})
      verdict.values[disk + "." + name] = value;
    verdict.evidence.push_back({{"disk", disk},
                                {"serial", serial},
                                {"model", host.line("sys/class/nvme/" + disk + "/model")},
                                {"critical_warning", health.critical_warning},
                                {"used_percent", health.used_percent},
                                {"hot_minutes", health.hot_minutes}});
  }
  if (disks == 0) return noData("this node has no NVMe disk");
  return concluded(std::move(verdict), wrong, unknown,
                   fmt::format("{} NVMe disks without a warning or an error", disks));
}

Verdict checkDiskRead(const nlohmann::json& params, const Host& host) {
  const double seconds = params.value("seconds", 5.0),
               floor = params.value("min_mbytes_per_s", 0.0);
  std::map<std::string, std::map<std::string, double>> rates;  // by model, by disk
  std::vector<std::string> wrong;
  Verdict verdict;
  for (const auto& disk : namespacesOf(host)) {
    const auto done = host.run(fioRead(disk, seconds));
    if (!done) return checkError(done.error().str());
    const auto rate =
        done->code == 0
            ? parseFio(done->out, true, false)
            : Result<FioRates>(fail(ErrorCode::Internal,
                                    fmt::format("fio ended with {}: {}", done->code, done->err)));
    if (!rate) return noData(disk + ": " + rate.error().str());
    rates[host.line("sys/block/" + disk + "/device/model")][disk] = rate->read_mbytes_per_s;
    verdict.values[disk + ".read_mbytes_per_s"] = rate->read_mbytes_per_s;
    if (!(rate->read_mbytes_per_s >= floor))
      wrong.push_back(fmt::format("{} reads {:.0f} MB/s, expected {:.0f}", disk,
                                  rate->read_mbytes_per_s, floor));
  }
  if (rates.empty()) return noData("this node has no NVMe disk");
  for (const auto& [model, disks] : rates)
    for (auto& slow : slowerThanTheirLike(disks))
      wrong.push_back(fmt::format("{} ({})", slow, model));
  const auto good = fmt::format("{} NVMe disks read", verdict.values.size());
  return concluded(std::move(verdict), wrong, {}, good);
}

Verdict checkDiskWrite(const nlohmann::json& params, const Host& host) {
  const double mebibytes =
      std::clamp(params.value("mebibytes", kWriteMebibytes), kLeastMebibytes, 64 * kWriteMebibytes);
  std::vector<std::string> wrong, unknown;
  Verdict verdict;
  const auto places = placesOn(host);
  if (places.empty()) return noData("no file system on an NVMe disk is mounted for writing");
  for (const auto& place : places) {
    const auto name = fmt::format("{} on {}", place.folder.string(), fmt::join(place.disks, ", "));
    const auto rates = writeAndReadBack(host, place, mebibytes);
    if (!rates) {
      auto& list = rates.error().code() == ErrorCode::Corrupt ? wrong : unknown;
      list.push_back(fmt::format("{}: {}", name, rates.error().str()));
      continue;
    }
    const auto& disk = *place.disks.begin();
    verdict.values[disk + ".write_mbytes_per_s"] = rates->write_mbytes_per_s;
    verdict.evidence.push_back({{"folder", place.folder.string()},
                                {"disks", place.disks},
                                {"write_mbytes_per_s", rates->write_mbytes_per_s},
                                {"verify_mbytes_per_s", rates->read_mbytes_per_s}});
  }
  return concluded(std::move(verdict), wrong, unknown,
                   fmt::format("{} file systems gave back what was written", places.size()));
}

}  // namespace muster::validate
