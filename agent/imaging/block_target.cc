// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/block_target.h"

#include "base/io/files.h"
#include "wire/task_reason.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace muster::agent {

namespace {

constexpr std::uint64_t kZeroPieceBytes = 1u << 20;
/// What the block layer says of a medium, a target or a way to it that is broken, and of a device
/// that is gone. Source: block/blk-core.c of the kernel
constexpr int kFailing[] = {EIO,     ENODATA,   EREMOTEIO, EILSEQ, EBADE,
                            ENOLINK, ETIMEDOUT, ENXIO,     ENODEV};

class FileTarget final : public BlockTarget {
 public:
  FileTarget(io::Fd fd, io::Fd direct, std::string name, std::uint64_t size_bytes, bool device)
      : fd_(std::move(fd)),
        direct_(std::move(direct)),
        name_(std::move(name)),
        size_bytes_(size_bytes),
        device_(device) {}

  std::uint64_t sizeBytes() const override { return size_bytes_; }

  Result<void> write(std::uint64_t offset, std::string_view data) override {
    if (offset > size_bytes_ || data.size() > size_bytes_ - offset)
      return fail(ErrorCode::Internal, fmt::format("{} bytes at {} do not fit on {} ({} bytes)",
                                                   data.size(), offset, name_, size_bytes_));
    while (!data.empty()) {
      const ssize_t n = ::pwrite(descriptor(data.data(), data.size(), offset), data.data(),
                                 data.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return broken("write", offset, errno);
      data.remove_prefix(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
    return {};
  }

  /// A hole promises zeros, on a device too (a plain discard does not), and the device may forget
  /// what was there. Without such a command the kernel writes zeros.
  Result<void> zero(std::uint64_t offset, std::uint64_t length_bytes) override {
    if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(offset), static_cast<off_t>(length_bytes)) == 0)
      return {};
    if (device_) {
      std::uint64_t range[2] = {offset, length_bytes};
      if (::ioctl(fd_.get(), BLKZEROOUT, &range) == 0) return {};
    }
    const std::string zeros(std::min(length_bytes, kZeroPieceBytes), '\0');
    for (std::uint64_t done = 0; done < length_bytes; done += zeros.size())
      TRY_OK(
          write(offset + done, std::string_view(zeros).substr(
                                   0, std::min<std::uint64_t>(zeros.size(), length_bytes - done))));
    return {};
  }

  Result<void> read(std::uint64_t offset, std::span<char> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t n =
          ::pread(descriptor(out.data() + done, out.size() - done, offset + done),
                  out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return broken("read", offset + done, n == 0 ? EIO : errno);
      done += static_cast<std::size_t>(n);
    }
    return {};
  }

  Result<void> flush() override {
    if (::fdatasync(fd_.get()) != 0) return broken("flush", 0, errno);
    if (device_) ::ioctl(fd_.get(), BLKFLSBUF, 0);
    ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
    return {};
  }

  bool readsMedium() const override { return direct_.valid(); }
  std::string name() const override { return name_; }

 private:
  /// Past the page cache where everything is aligned: half the copies, and memory stays what it is.
  int descriptor(const char* data, std::size_t size, std::uint64_t offset) const {
    const auto aligned = [](std::uint64_t number) {
      return number % AlignedBuffer::kAlignment == 0;
    };
    return direct_.valid() && aligned(reinterpret_cast<std::uintptr_t>(data)) && aligned(size) &&
                   aligned(offset)
               ? direct_.get()
               : fd_.get();
  }

  std::unexpected<Error> broken(std::string_view what, std::uint64_t offset, int error) const {
    return fail(diskError(what, name_, offset, error));
  }

  io::Fd fd_;
  io::Fd direct_;  ///< opened with O_DIRECT; not valid where there is no such thing (tmpfs)
  std::string name_;
  std::uint64_t size_bytes_;
  bool device_;
};

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t capacity_bytes)
    : memory_(static_cast<char*>(std::aligned_alloc(
          kAlignment, (capacity_bytes + kAlignment - 1) / kAlignment * kAlignment))) {}

void AlignedBuffer::Free::operator()(char* memory) const { std::free(memory); }

Error diskError(std::string_view what, std::string_view name, std::uint64_t offset,
                int error_number) {
  const bool failing =
      std::find(std::begin(kFailing), std::end(kFailing), error_number) != std::end(kFailing);
  Error error(ErrorCode::Internal, fmt::format("cannot {} {} at byte {}: {}{}", what, name, offset,
                                               std::strerror(error_number),
                                               failing ? "; it is failing: replace the disk" : ""));
  return failing ? std::move(error).because(wire::TaskReason::DiskFailing) : error;
}

Result<std::unique_ptr<BlockTarget>> openBlockTarget(const std::filesystem::path& path,
                                                     std::string name) {
  io::Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid())
    return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Denied,
                fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0)
    return fail(ErrorCode::Internal,
                fmt::format("cannot look at {}: {}", path.string(), std::strerror(errno)));
  std::uint64_t size_bytes = static_cast<std::uint64_t>(info.st_size);
  if (S_ISBLK(info.st_mode)) {
    if (::ioctl(fd.get(), BLKGETSIZE64, &size_bytes) != 0)
      return fail(ErrorCode::Internal, fmt::format("cannot tell the size of {}: {}", path.string(),
                                                   std::strerror(errno)));
  } else if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::InvalidInput, path.string() + " is neither a block device nor a file");
  }
  io::Fd direct(::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  return std::make_unique<FileTarget>(std::move(fd), std::move(direct),
                                      name.empty() ? path.string() : std::move(name), size_bytes,
                                      S_ISBLK(info.st_mode));
}

}  // namespace muster::agent
