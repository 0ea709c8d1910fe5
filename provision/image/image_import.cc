#include "provision/image/image_import.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::provision {

namespace {

constexpr std::chrono::minutes kConvertLimit{20};
constexpr std::uint64_t kSectorBytes = 512;
constexpr off_t kExtMagicOffset = 1024 + 56;  ///< in the superblock, which starts at 1024
constexpr std::size_t kCopyBytes = 4u << 20;

struct Range {
  std::uint64_t offset = 0, length = 0;  ///< bytes
};

bool hasExt(int fd, std::uint64_t offset) {
  unsigned char magic[2] = {};
  return ::pread(fd, magic, 2, static_cast<off_t>(offset) + kExtMagicOffset) == 2 && magic[0] == 0x53 && magic[1] == 0xef;
}

Result<Range> findRoot(int fd, const std::filesystem::path& raw) {
  std::error_code error;
  const auto size = std::filesystem::file_size(raw, error);
  if (hasExt(fd, 0)) return Range{0, size};
  io::Command command{.program = "sfdisk", .args = {"--json", raw.string()}};
  const auto listed = io::runChecked(command);
  const auto table = listed ? nlohmann::json::parse(*listed, nullptr, false) : nlohmann::json();
  Range best;
  if (table.is_object())
    for (const auto& partition : table.value("partitiontable", nlohmann::json::object()).value("partitions", nlohmann::json::array())) {
      const Range range{partition.value("start", std::uint64_t{0}) * kSectorBytes, partition.value("size", std::uint64_t{0}) * kSectorBytes};
      if (range.offset + range.length <= size && range.length > best.length && hasExt(fd, range.offset)) best = range;
    }
  if (best.length == 0) return fail(ErrorCode::InvalidInput, "there is neither an ext4 file system nor a partition with one in it");
  return best;
}

Result<void> copyRange(int from, Range range, const std::filesystem::path& to_path) {
  const io::Fd to(::open(to_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const std::uint64_t size = range.length / 4096 * 4096;
  if (!to.valid() || ::ftruncate(to.get(), static_cast<off_t>(size)) != 0)
    return fail(ErrorCode::Internal, fmt::format("cannot create {}: {}", to_path.string(), std::strerror(errno)));
  std::string piece(kCopyBytes, '\0');
  for (std::uint64_t done = 0; done < size;) {
    const ssize_t n = ::pread(from, piece.data(), std::min<std::uint64_t>(piece.size(), size - done), static_cast<off_t>(range.offset + done));
    if (n <= 0) return fail(ErrorCode::Corrupt, "the image is shorter than its partition table says");
    const bool zero = piece[0] == 0 && std::memcmp(piece.data(), piece.data() + 1, static_cast<std::size_t>(n) - 1) == 0;
    if (!zero && ::pwrite(to.get(), piece.data(), static_cast<std::size_t>(n), static_cast<off_t>(done)) != n)
      return fail(ErrorCode::Unavailable, fmt::format("cannot write {}: {}", to_path.string(), std::strerror(errno)));
    done += static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace

Result<void> importImage(const inventory::ImageImport& import, const std::filesystem::path& work, const std::filesystem::path& image_file,
                         const Say& say) {
  say(fmt::format("importing {}", import.path.string()));
  TRY(sha256, io::sha256File(import.path));
  if (sha256 != import.sha256)
    return fail(ErrorCode::Corrupt, fmt::format("{} has the SHA-256 {}, the inventory says {}", import.path.string(), sha256, import.sha256));
  const auto raw = work / "imported.raw";
  io::Command convert{.program = "qemu-img", .args = {"convert", "-O", "raw", import.path.string(), raw.string()}};
  convert.timeout = kConvertLimit;
  if (auto done = io::runChecked(convert); !done) return fail(std::move(done).error().within("reading " + import.path.string()));
  const io::Fd fd(::open(raw.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail(ErrorCode::Internal, fmt::format("cannot open {}: {}", raw.string(), std::strerror(errno)));
  auto root = findRoot(fd.get(), raw);
  if (!root) return fail(std::move(root).error().within(import.path.string()));
  return copyRange(fd.get(), *root, image_file);
}

}  // namespace muster::provision
