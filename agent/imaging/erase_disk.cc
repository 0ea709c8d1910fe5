// SPDX-License-Identifier: Apache-2.0
// One disk: marks, the methods one after the other, and the look whether the marks are gone.
#include "agent/imaging/erase.h"

#include "base/io/crypto.h"

#include <fmt/format.h>
#include <nvme/types.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace muster::agent {

namespace {

constexpr std::uint64_t kOverwritePiece = 4u << 20;
constexpr double kMarked = 0.01, kErased = 0.99;  // where the bar stands when a step begins

constexpr std::size_t kSanitizeLogBytes = 4;  ///< the head of the page: progress and state

/// A structure of the NVMe specification, little-endian as is every machine that muster runs on;
/// what is missing at its end is zero.
template <class T>
T structureOf(std::string_view bytes) {
  T out{};
  std::memcpy(&out, bytes.data(), std::min(bytes.size(), sizeof out));
  return out;
}

/// Random blocks all over the disk, remembered by their sums.
class Marks {
 public:
  explicit Marks(std::uint64_t size_bytes) {
    const std::uint64_t blocks = size_bytes / kMarkBytes;
    if (blocks == 0) return;
    std::set<std::uint64_t> places{0, blocks - 1};
    for (std::size_t i = 0; i < kMarkedPlaces; ++i) {
      std::uint64_t number = 0;
      std::memcpy(&number, io::randomBytes(sizeof number).data(), sizeof number);
      places.insert(number % blocks);
    }
    for (const std::uint64_t place : places) marks_.push_back({place * kMarkBytes, {}});
  }

  std::size_t size() const { return marks_.size(); }

  /// Writes them and reads them back from the medium: only a disk that holds them now can show
  /// later that they are gone.
  Result<void> put(BlockTarget& target) {
    AlignedBuffer block(kMarkBytes);
    block.resize(kMarkBytes);
    for (auto& mark : marks_) {
      const auto random = io::randomBytes(kMarkBytes);
      std::copy(random.begin(), random.end(), block.data());
      mark.sum = io::sha256Hex(block.view());
      TRY_OK(target.write(mark.offset, block.view()));
    }
    TRY_OK(target.flush());
    TRY(there, countThere(target));
    if (there != marks_.size())
      return fail(
          ErrorCode::Corrupt,
          fmt::format("{} of {} blocks are lost as soon as they are written: the disk is broken",
                      marks_.size() - there, marks_.size()));
    return {};
  }

  /// Errors: Corrupt (a mark is still there; with `zeros`, a place holds anything), those of the
  /// disk
  Result<void> checkGone(BlockTarget& target, bool zeros) const {
    TRY_OK(target.flush());
    AlignedBuffer block(kMarkBytes);
    block.resize(kMarkBytes);
    for (const auto& mark : marks_) {
      TRY_OK(target.read(mark.offset, block.span()));
      if (io::sha256Hex(block.view()) == mark.sum)
        return fail(ErrorCode::Corrupt,
                    fmt::format("what was at byte {} is still there", mark.offset));
      if (zeros &&
          std::any_of(block.span().begin(), block.span().end(), [](char c) { return c != 0; }))
        return fail(ErrorCode::Corrupt,
                    fmt::format("byte {} and those after it are not the zeros that were written",
                                mark.offset));
    }
    return {};
  }

 private:
  struct Mark {
    std::uint64_t offset;
    std::string sum;
  };

  Result<std::size_t> countThere(BlockTarget& target) const {
    AlignedBuffer block(kMarkBytes);
    block.resize(kMarkBytes);
    std::size_t there = 0;
    for (const auto& mark : marks_) {
      TRY_OK(target.read(mark.offset, block.span()));
      there += io::sha256Hex(block.view()) == mark.sum ? 1 : 0;
    }
    return there;
  }

  std::vector<Mark> marks_;
};

/// The methods of one disk, strongest first; the last one always works while the disk does.
class Eraser {
 public:
  using Notify = std::function<void(double, const std::string&)>;
  Eraser(const DiskInfo& disk, bool whole_controller, const EraseTools& tools, const Notify& notify)
      : disk_(disk),
        controller_(nvmeController(disk.path)),
        whole_controller_(whole_controller),
        tools_(tools),
        notify_(notify) {}

  /// Also why the stronger ones are left out.
  std::vector<EraseMethod> methods(std::vector<std::string>& left_out) const {
    std::vector<EraseMethod> methods;
    if (!controller_.empty() && !whole_controller_) {
      left_out.push_back("nvme: another namespace of its controller, which stays, might go too");
    } else if (!controller_.empty()) {
      const auto identity = tools_.run("nvme", {"id-ctrl", "--raw-binary", controller_});
      if (!identity) left_out.push_back("nvme: " + identity.error().text());
      if (identity) methods = nvmeMethods(*identity);
    }
    methods.push_back(EraseMethod::SecureDiscard);
    methods.push_back(EraseMethod::Overwrite);
    return methods;
  }

  Result<void> run(EraseMethod method) const {
    const std::string device = disk_.path.string();
    switch (method) {
      case EraseMethod::NvmeFormatCrypto:
        return tool("nvme", {"format", device, "--ses=2", "--force"});
      case EraseMethod::NvmeFormatUser:
        return tool("nvme", {"format", device, "--ses=1", "--force"});
      case EraseMethod::NvmeSanitizeBlock:
        return sanitize("--sanact=2");
      case EraseMethod::NvmeSanitizeCrypto:
        return sanitize("--sanact=4");
      case EraseMethod::SecureDiscard:
        return tool("blkdiscard",
                    {"--secure", "--force", device});  // it would claim the disk, which is ours
      case EraseMethod::Overwrite:
        return overwrite();
    }
    return fail(ErrorCode::Internal, "no such method");
  }

 private:
  Result<void> tool(const std::string& program, const std::vector<std::string>& args) const {
    TRY_OK(tools_.run(program, args));
    return {};
  }

  /// Goes on by itself, also over a power cut; only the disk knows when it has ended.
  Result<void> sanitize(const char* action) const {
    TRY_OK(tool("nvme", {"sanitize", controller_, action}));
    for (int poll = 0; poll < kMaxSanitizePolls; ++poll) {
      tools_.pause(kSanitizePoll);
      TRY(log, tools_.run("nvme", {"sanitize-log", "--raw-binary", controller_}));
      if (log.size() < kSanitizeLogBytes)
        return fail(ErrorCode::Corrupt, "its sanitize log has no state");
      const auto page = structureOf<nvme_sanitize_log_page>(log);
      const unsigned state =
          page.sstat >> NVME_SANITIZE_SSTAT_STATUS_SHIFT & NVME_SANITIZE_SSTAT_STATUS_MASK;
      switch (state) {
        case NVME_SANITIZE_SSTAT_STATUS_COMPLETE_SUCCESS:
        case NVME_SANITIZE_SSTAT_STATUS_ND_COMPLETE_SUCCESS:
          return {};
        case NVME_SANITIZE_SSTAT_STATUS_IN_PROGESS:
          notify_(kMarked + (kErased - kMarked) * page.sprog / 65536.0,
                  fmt::format("{} sanitizes itself", disk_.str()));
          break;
        default:
          return fail(ErrorCode::Internal,
                      fmt::format("it says that its sanitizing did not succeed (state {})", state));
      }
      if (tools_.cancelled())
        return fail(
            ErrorCode::Timeout,
            "was cancelled, or its deadline passed; the disk sanitizes itself all the same");
    }
    return fail(ErrorCode::Timeout, "it has sanitized itself for twelve hours");
  }

  Result<void> overwrite() const {
    TRY(target, tools_.open(disk_.path));
    AlignedBuffer zeros(kOverwritePiece);
    std::memset(zeros.data(), 0, kOverwritePiece);
    for (std::uint64_t at = 0; at < disk_.size_bytes; at += kOverwritePiece) {
      if (tools_.cancelled())
        return fail(ErrorCode::Timeout,
                    fmt::format("was cancelled, or its deadline passed, after {} of {} MiB",
                                at >> 20, disk_.size_bytes >> 20));
      zeros.resize(std::min(kOverwritePiece, disk_.size_bytes - at));
      TRY_OK(target->write(at, zeros.view()));
      notify_(kMarked + (kErased - kMarked) * static_cast<double>(at) /
                            static_cast<double>(disk_.size_bytes),
              fmt::format("overwriting {}", disk_.str()));
    }
    return target->flush();
  }

  const DiskInfo& disk_;
  std::string controller_;
  bool whole_controller_;
  const EraseTools& tools_;
  const Notify& notify_;
};

constexpr std::array<std::pair<EraseMethod, std::string_view>, 6> kMethods{
    {{EraseMethod::NvmeFormatCrypto, "nvme-format-crypto"},
     {EraseMethod::NvmeSanitizeBlock, "nvme-sanitize-block"},
     {EraseMethod::NvmeSanitizeCrypto, "nvme-sanitize-crypto"},
     {EraseMethod::NvmeFormatUser, "nvme-format-user-data"},
     {EraseMethod::SecureDiscard, "secure-discard"},
     {EraseMethod::Overwrite, "overwrite"}}};

}  // namespace

std::string_view toString(EraseMethod method) {
  return std::find_if(kMethods.begin(), kMethods.end(),
                      [method](const auto& one) { return one.first == method; })
      ->second;
}

std::string_view levelOf(EraseMethod method) {
  return method == EraseMethod::Overwrite ? "clear" : "purge";
}

std::string nvmeController(const std::filesystem::path& disk) {
  const std::string path = disk.string(), name = disk.filename();
  constexpr std::string_view kPrefix = "nvme";
  if (!name.starts_with(kPrefix)) return {};
  const auto digits = [&name](std::size_t from) {
    return std::min(name.find_first_not_of("0123456789", from), name.size());
  };
  const std::size_t end = digits(kPrefix.size());
  if (end == kPrefix.size() || end >= name.size() || name[end] != 'n' || end + 1 == name.size() ||
      digits(end + 1) != name.size())
    return {};
  return path.substr(0, path.size() - name.size() + end);
}

std::vector<EraseMethod> nvmeMethods(std::string_view identify) {
  if (identify.size() < sizeof(nvme_id_ctrl)) return {};
  const auto controller = structureOf<nvme_id_ctrl>(identify);
  const bool formats = (controller.oacs & NVME_CTRL_OACS_FORMAT) != 0;
  std::vector<EraseMethod> methods;
  if (formats && (controller.fna & NVME_CTRL_FNA_CRYPTO_ERASE) != 0)
    methods.push_back(EraseMethod::NvmeFormatCrypto);
  if ((controller.sanicap & NVME_CTRL_SANICAP_BES) != 0)
    methods.push_back(EraseMethod::NvmeSanitizeBlock);
  if ((controller.sanicap & NVME_CTRL_SANICAP_CES) != 0)
    methods.push_back(EraseMethod::NvmeSanitizeCrypto);
  if (formats) methods.push_back(EraseMethod::NvmeFormatUser);
  return methods;
}

DiskErasure eraseDisk(const DiskInfo& disk, bool whole_controller, const EraseTools& tools,
                      const std::function<void(double, const std::string&)>& progress) {
  DiskErasure done;
  done.disk = disk;
  const double begin = tools.now_seconds();
  const auto attempt = [&](EraseMethod method) -> Result<void> {
    Marks marks(disk.size_bytes);
    {
      TRY(target, tools.open(disk.path));
      TRY_OK(marks.put(*target));
    }
    progress(kMarked, fmt::format("{}: {}", disk.str(), toString(method)));
    TRY_OK(Eraser(disk, whole_controller, tools, progress).run(method));
    TRY(target, tools.open(disk.path));
    TRY_OK(marks.checkGone(*target, method == EraseMethod::Overwrite));
    done.places_checked = marks.size();
    return {};
  };
  const Eraser eraser(disk, whole_controller, tools, progress);
  for (const EraseMethod method : eraser.methods(done.tried)) {
    if (tools.cancelled()) {
      done.fault = "was cancelled, or its deadline passed";
      break;
    }
    if (const auto worked = attempt(method); !worked) {
      done.fault = worked.error().text();
      done.tried.push_back(fmt::format("{}: {}", toString(method), done.fault));
      continue;
    }
    done.method = toString(method);
    done.level = levelOf(method);
    done.bytes = disk.size_bytes;
    done.fault.clear();
    break;
  }
  done.seconds = tools.now_seconds() - begin;
  return done;
}

}  // namespace muster::agent
