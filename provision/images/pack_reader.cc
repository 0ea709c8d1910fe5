// SPDX-License-Identifier: Apache-2.0
#include "provision/images/pack_reader.h"

#include "base/io/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace muster::provision {

using wire::PackIndex;

namespace {

constexpr std::size_t kMaxFaults = 8;

/// Unpacks one chunk after another; one reader a thread.
class ChunkReader {
 public:
  ChunkReader(const PackIndex& index, int pack)
      : index_(index), pack_(pack), context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {}

  /// The raw bytes, valid until the next call. Errors: Corrupt
  Result<const std::string*> read(std::size_t i) {
    const wire::PackChunk& chunk = index_.chunks[i];
    raw_.assign(index_.rawBytes(i), '\0');
    if (chunk.zero) return &raw_;
    packed_.resize(chunk.length);
    if (!readFully(chunk.offset))
      return fail(ErrorCode::Corrupt, fmt::format("chunk {} lies beyond the end of the pack", i));
    const std::size_t size = ZSTD_decompressDCtx(context_.get(), raw_.data(), raw_.size(),
                                                 packed_.data(), packed_.size());
    if (ZSTD_isError(size) || size != raw_.size() || io::sha256Hex(raw_) != chunk.sha256 ||
        !storedRight(chunk))
      return fail(ErrorCode::Corrupt,
                  fmt::format("chunk {} (bytes {} to {} of the pack) is damaged", i, chunk.offset,
                              chunk.offset + chunk.length));
    return &raw_;
  }

 private:
  /// What a writer goes by must be right as well as what it ends up with.
  bool storedRight(const wire::PackChunk& chunk) const {
    return index_.format == 1 ||
           (io::sha256Hex(packed_) == chunk.packed_sha256 && wire::quickSum(raw_) == chunk.quick);
  }
  bool readFully(std::uint64_t offset) {
    for (std::size_t done = 0; done < packed_.size();) {
      const ssize_t n = ::pread(pack_, packed_.data() + done, packed_.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  }

  const PackIndex& index_;
  int pack_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::string packed_, raw_;
};

}  // namespace

namespace {

/// Only a regular file: opening a FIFO would wait for ever. Errors: NotFound, Corrupt
Result<io::Fd> openPack(const std::filesystem::path& pack) {
  io::Fd fd(::open(pack.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid())
    return fail(ErrorCode::NotFound,
                fmt::format("cannot open {}: {}", pack.string(), std::strerror(errno)));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(ErrorCode::Corrupt,
                fmt::format("{} is no regular file; `muster image verify` shows what else is "
                            "damaged, then build or import the image again",
                            pack.string()));
  return fd;
}

}  // namespace

std::vector<std::string> wrongChunks(const PackIndex& index, const std::filesystem::path& pack,
                                     unsigned threads) {
  const auto fd = openPack(pack);
  if (!fd) return {fd.error().text()};
  struct stat info{};
  if (::fstat(fd->get(), &info) != 0)
    return {fmt::format("cannot look at {}: {}", pack.string(), std::strerror(errno))};
  std::map<std::size_t, std::string> found;
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    ChunkReader reader(index, fd->get());
    for (std::size_t i = next++; i < index.chunks.size(); i = next++) {
      const auto read = reader.read(i);
      const std::lock_guard guard(mutex);
      if (!read) found.emplace(i, read.error().text());
    }
  };
  {
    std::vector<std::jthread> team;
    for (unsigned i = 1; i < std::max(1u, threads); ++i) team.emplace_back(work);
    work();
  }
  std::vector<std::string> faults;
  if (static_cast<std::uint64_t>(info.st_size) != index.pack_bytes)
    faults.push_back(
        fmt::format("the pack has {} bytes instead of {}", info.st_size, index.pack_bytes));
  for (const auto& [chunk, fault] : found) {
    if (faults.size() == kMaxFaults) break;
    faults.push_back(fault);
  }
  if (found.size() > kMaxFaults)
    faults.push_back(fmt::format("… {} chunks are damaged", found.size()));
  return faults;
}

Result<void> unpack(const PackIndex& index, const std::filesystem::path& pack,
                    const std::filesystem::path& raw) {
  TRY(in, openPack(pack));
  const io::Fd out(::open(raw.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out.valid() || ::ftruncate(out.get(), static_cast<off_t>(index.size_bytes)) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot create {}: {}", raw.string(), std::strerror(errno)));
  ChunkReader reader(index, in.get());
  for (std::size_t i = 0; i < index.chunks.size(); ++i) {
    if (index.chunks[i].zero) continue;
    TRY(bytes, reader.read(i));
    if (::pwrite(out.get(), bytes->data(), bytes->size(),
                 static_cast<off_t>(i * index.chunk_bytes)) != static_cast<ssize_t>(bytes->size()))
      return fail(ErrorCode::Unavailable,
                  fmt::format("cannot write {}: {}", raw.string(), std::strerror(errno)));
  }
  return {};
}

}  // namespace muster::provision
