// SPDX-License-Identifier: Apache-2.0
#include "provision/images/pack_writer.h"

#include "base/io/files.h"
#include "wire/partition_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace muster::provision {

using wire::PackChunk;
using wire::PackIndex;

namespace {

/// Level 9 against 3: a tenth smaller on every wire for some ten seconds once a build; unpacking
/// costs the same.
constexpr int kZstdLevel = 9;
constexpr std::size_t kChunksPerThread = 8;  ///< one batch of work; bounds the memory

/// One chunk on its way: read, then compressed by any thread, then written in order.
struct Slot {
  std::string raw, packed, error;
  PackChunk chunk;
};

void compress(ZSTD_CCtx* context, Slot& slot) {
  slot.error.clear();
  slot.chunk.sha256 = io::sha256Hex(slot.raw);
  slot.chunk.zero = wire::allZero(slot.raw);
  slot.chunk.length = 0;
  slot.chunk.packed_sha256.clear();
  slot.chunk.quick = 0;
  if (slot.chunk.zero) return;
  slot.packed.resize(ZSTD_compressBound(slot.raw.size()));
  const std::size_t size = ZSTD_compressCCtx(context, slot.packed.data(), slot.packed.size(),
                                             slot.raw.data(), slot.raw.size(), kZstdLevel);
  if (ZSTD_isError(size)) {
    slot.error = ZSTD_getErrorName(size);
    return;
  }
  slot.packed.resize(size);
  slot.chunk.length = size;
  slot.chunk.packed_sha256 = io::sha256Hex(slot.packed);
  slot.chunk.quick = wire::quickSum(slot.raw);
}

void compressAll(std::vector<Slot>& slots, std::size_t count, unsigned threads) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&slots, &next, count] {
    const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                       ZSTD_freeCCtx);
    for (std::size_t i = next++; i < count; i = next++) compress(context.get(), slots[i]);
  };
  std::vector<std::jthread> team;
  for (unsigned i = 1; i < threads; ++i) team.emplace_back(work);
  work();
}

Result<void> readFully(int fd, std::uint64_t offset, std::string& out,
                       const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    if (n == 0)
      return fail(ErrorCode::Internal,
                  fmt::format("{} became shorter while it was packed", path.string()));
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void> writeFully(int fd, std::string_view data, const std::filesystem::path& path) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(errno == ENOSPC ? ErrorCode::Unavailable : ErrorCode::Internal,
                  fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Result<PackIndex> writePack(const std::filesystem::path& raw, const std::filesystem::path& pack,
                            const std::string& name, unsigned threads, wire::PackKind kind) {
  const io::Fd in(::open(raw.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!in.valid() || ::fstat(in.get(), &info) != 0)
    return fail(ErrorCode::NotFound,
                fmt::format("cannot open the image {}: {}", raw.string(), std::strerror(errno)));
  const io::Fd out(::open(pack.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!out.valid())
    return fail(ErrorCode::Internal,
                fmt::format("cannot create {}: {}", pack.string(), std::strerror(errno)));

  PackIndex index;
  index.name = name;
  index.kind = kind;
  if (kind != wire::PackKind::RootFs) index.root_fs.clear();
  index.size_bytes = static_cast<std::uint64_t>(info.st_size);
  if (kind == wire::PackKind::Disk) {
    std::string head(std::min<std::uint64_t>(wire::kTableHeadBytes, index.size_bytes), '\0');
    TRY_OK(readFully(in.get(), 0, head, raw));
    index.sector_bytes = wire::sectorBytesOfTable(head);
  }
  const std::size_t total = (index.size_bytes + index.chunk_bytes - 1) / index.chunk_bytes;
  threads = std::max(1u, threads);
  std::vector<Slot> slots(std::min<std::size_t>(total, threads * kChunksPerThread));
  io::Sha256 whole;
  for (std::size_t first = 0; first < total; first += slots.size()) {
    const std::size_t count = std::min(slots.size(), total - first);
    for (std::size_t i = 0; i < count; ++i) {
      slots[i].raw.resize(index.rawBytes(first + i));
      TRY_OK(readFully(in.get(), (first + i) * index.chunk_bytes, slots[i].raw, raw));
    }
    compressAll(slots, count, threads);
    for (std::size_t i = 0; i < count; ++i) {
      Slot& slot = slots[i];
      if (!slot.error.empty())
        return fail(ErrorCode::Internal,
                    fmt::format("cannot compress chunk {}: {}", first + i, slot.error));
      slot.chunk.offset = index.pack_bytes;
      if (!slot.chunk.zero) {
        TRY_OK(writeFully(out.get(), slot.packed, pack));
        whole.update(slot.packed.data(), slot.packed.size());
        index.pack_bytes += slot.chunk.length;
      }
      index.chunks.push_back(slot.chunk);
    }
  }
  if (::fsync(out.get()) != 0)
    return fail(ErrorCode::Internal,
                fmt::format("cannot store {}: {}", pack.string(), std::strerror(errno)));
  index.pack_sha256 = whole.finishHex();
  if (auto sound = wire::checkIndex(index); !sound)
    return fail(ErrorCode::InvalidInput,
                raw.string() + " cannot be packed: " + sound.error().text());
  return index;
}

}  // namespace muster::provision
