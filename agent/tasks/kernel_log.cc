// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/kernel_log.h"

#include "base/io/files.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <functional>

namespace muster::agent {
namespace {

constexpr std::size_t kRecordBytes = 16u << 10;  ///< more than the kernel puts into one record
constexpr std::size_t kMaxRecordsAtOnce = 200'000;
constexpr unsigned kFacilityStep =
    8;  ///< priority = facility * 8 + level; facility 0 is the kernel
constexpr std::string_view kXid = "NVRM: Xid (PCI:";

/// A message with a device in it: what stands between `before` and `after`.
struct Pattern {
  std::string_view holds, id, before, after;
};
constexpr std::array kPatterns = {
    Pattern{"emounting filesystem read-only", "disk.read-only", "(",
            ")"},  // "EXT4-fs (sda2): Remounting filesystem read-only"
    Pattern{"I/O error, dev ", "disk.io-error", "dev ", ","},
    Pattern{"Buffer I/O error on dev ", "disk.io-error", "dev ", ","},
    Pattern{"event severity: fatal", "system.mce", "", ""},
    Pattern{"Uncorrected hardware memory error", "system.mce", "", ""},
};

/// Images that are mounted, memory, and what a BMC lends by virtual media: none is a disk of the
/// node.
constexpr std::array<std::string_view, 6> kNoDisks = {"loop", "ram", "zram", "nbd", "sr", "fd"};

bool isOfNoDisk(std::string_view device) {
  return std::any_of(kNoDisks.begin(), kNoDisks.end(), [device](std::string_view kind) {
    return device.starts_with(kind) && device.size() > kind.size() && device[kind.size()] >= '0' &&
           device[kind.size()] <= '9';
  });
}

std::string between(std::string_view text, std::string_view before, std::string_view after) {
  if (before.empty()) return {};
  const auto start = text.find(before);
  if (start == std::string_view::npos) return {};
  const auto rest = text.substr(start + before.size());
  return std::string(rest.substr(0, rest.find(after)));
}

/// "NVRM: Xid (PCI:0000:18:00): 79, pid=…, GPU has fallen off the bus."
std::optional<wire::Symptom> xidOf(std::string_view message) {
  const auto at = message.find(kXid);
  if (at == std::string_view::npos) return std::nullopt;
  auto rest = message.substr(at + kXid.size());
  const auto close = rest.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  std::string device(rest.substr(0, close));
  if (device.find('.') == std::string::npos) device += ".0";
  rest.remove_prefix(close + 3);
  unsigned number = 0;
  const auto [end, trouble] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (trouble != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  while (!rest.empty() && (rest.front() == ',' || rest.front() == ' ')) rest.remove_prefix(1);
  return wire::Symptom{fmt::format("xid.{}", number), std::move(device), 1,
                       std::string(cutToBytes(rest, wire::kMaxSymptomTextBytes))};
}

}  // namespace

std::optional<KernelRecord> parseKernelRecord(std::string_view line) {
  const auto semicolon = line.find(';');
  if (line.empty() || line.front() == ' ' || semicolon == std::string_view::npos)
    return std::nullopt;  // ' ': the dictionary of a record
  const auto head = line.substr(0, semicolon);
  unsigned priority = 0;
  KernelRecord record;
  const auto first = std::from_chars(head.data(), head.data() + head.size(), priority);
  if (first.ec != std::errc() || first.ptr == head.data() + head.size() || *first.ptr != ',')
    return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, head.data() + head.size(), record.sequence);
  if (second.ec != std::errc()) return std::nullopt;
  record.by_kernel = priority < kFacilityStep;
  record.text = line.substr(semicolon + 1);
  return record;
}

std::optional<wire::Symptom> symptomOf(std::string_view message) {
  if (auto xid = xidOf(message)) return xid;
  for (const auto& pattern : kPatterns) {
    if (message.find(pattern.holds) == std::string_view::npos) continue;
    auto device = between(message, pattern.before, pattern.after);
    if (pattern.id.starts_with("disk.") && isOfNoDisk(device)) return std::nullopt;
    return wire::Symptom{std::string(pattern.id), std::move(device), 1,
                         std::string(cutToBytes(message, wire::kMaxSymptomTextBytes))};
  }
  return std::nullopt;
}

void KernelLog::absorb(std::string_view line) {
  const auto record = parseKernelRecord(line);
  if (!record || record->sequence < next_) return;
  next_ = record->sequence + 1;
  if (!record->by_kernel) return;
  auto symptom = symptomOf(record->text);
  if (!symptom) return;
  if (const auto over = over_.find(symptom->device);
      over != over_.end() && record->sequence < over->second && symptom->id.starts_with("xid."))
    return;
  auto [known, is_new] = seen_.try_emplace({symptom->id, symptom->device}, *symptom);
  if (is_new) return;
  ++known->second.count;
  known->second.text =
      std::move(symptom->text);  // the last word counts: a state may have gone back
}

void KernelLog::forgetGpu(const std::string& device) {
  over_[device] = next_;
  std::erase_if(seen_, [&device](const auto& entry) {
    return entry.first.second == device && entry.first.first.starts_with("xid.");
  });
}

namespace {

/// Calls `take` with every record that is there now.
Result<void> readRecords(const std::filesystem::path& kmsg,
                         const std::function<void(std::string_view)>& take) {
  const int fd = ::open(kmsg.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return fail(ErrorCode::Unavailable, fmt::format("{}: {}", kmsg.string(), std::strerror(errno)));
  const io::Fd closer(fd);
  std::string buffer(kRecordBytes, '\0'), rest;
  for (std::size_t records = 0; records < kMaxRecordsAtOnce; ++records) {
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR))
      continue;  // the ring went on meanwhile: the next record is the oldest that is left
    if (got < 0 && errno == EAGAIN) break;
    if (got < 0)
      return fail(ErrorCode::Unavailable,
                  fmt::format("{}: {}", kmsg.string(), std::strerror(errno)));
    if (got == 0) break;
    rest.append(buffer.data(), static_cast<std::size_t>(got));
    for (auto end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      take(std::string_view(rest).substr(0, end));
      rest.erase(0, end + 1);
    }
  }
  return {};
}

}  // namespace

Result<void> KernelLog::read(const std::filesystem::path& kmsg) {
  return readRecords(kmsg, [this](std::string_view line) { absorb(line); });
}

Result<std::vector<std::string>> kernelLinesOf(const std::filesystem::path& kmsg,
                                               std::size_t max_bytes) {
  std::deque<std::string> lines;
  std::size_t bytes = 0;
  TRY_OK(readRecords(kmsg, [&](std::string_view line) {
    const auto record = parseKernelRecord(line);
    if (!record || !record->by_kernel) return;
    // "6,339,5140900,-;text": the third number is microseconds since boot.
    const auto head = line.substr(0, line.find(';'));
    auto time = head.substr(std::min(head.size(), head.find(',', head.find(',') + 1) + 1));
    time = time.substr(0, time.find(','));
    std::uint64_t microseconds = 0;
    std::from_chars(time.data(), time.data() + time.size(), microseconds);
    lines.push_back(
        fmt::format("[{:>12.6f}] {}", static_cast<double>(microseconds) / 1e6, record->text));
    bytes += lines.back().size();
    while (bytes > max_bytes && !lines.empty()) {
      bytes -= lines.front().size();
      lines.pop_front();
    }
  }));
  return std::vector<std::string>(std::make_move_iterator(lines.begin()),
                                  std::make_move_iterator(lines.end()));
}

std::vector<wire::Symptom> KernelLog::symptoms() const {
  std::vector<wire::Symptom> out;
  for (const auto& [key, symptom] : seen_)
    if (out.size() < wire::kMaxSymptoms / 2) out.push_back(symptom);
  return out;
}

}  // namespace muster::agent
