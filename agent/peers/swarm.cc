// SPDX-License-Identifier: Apache-2.0
#include "agent/peers/swarm.h"

#include "agent/peers/shared_progress.h"
#include "base/io/files.h"
#include "base/io/sha1.h"
#include "wire/metainfo.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kEngineGrace{1500};  ///< it says good-bye to the tracker

}  // namespace

Result<PieceTable> PieceTable::of(std::string_view metainfo, std::uint64_t pack_bytes) {
  auto info = wire::readMetainfo(std::string(metainfo));
  if (!info || info->pack_bytes != pack_bytes)
    return fail(ErrorCode::Corrupt, "the metainfo is not one of this pack");
  return PieceTable{pack_bytes, info->piece_bytes, std::string(info->hashes())};
}

Result<std::unique_ptr<Swarm>> Swarm::join(SwarmOptions options, PieceTable table,
                                           std::string_view metainfo,
                                           const std::string& announce_url,
                                           const std::string& wanted,
                                           io::ProcessRunner& processes) {
  std::error_code ignored;
  fs::remove_all(options.folder, ignored);  // of an agent that was killed
  TRY_OK(io::makeDirs(options.folder, 0700));
  // A mapped file on a full file system is a fault in the middle of everything, so it is asked
  // before.
  const auto needed = wanted.empty()
                          ? table.pack_bytes
                          : std::uint64_t{table.piece_bytes} *
                                static_cast<std::uint64_t>(std::ranges::count(wanted, '\1'));
  if (const auto space = fs::space(options.folder, ignored); ignored || space.available < needed)
    return fail(ErrorCode::Unavailable, fmt::format("{} has no room for pieces of {} MiB",
                                                    options.folder.string(), needed >> 20));
  TRY_OK(io::writeFileAtomic(options.folder / "metainfo", metainfo));
  io::Command command;
  command.program = options.program.string();
  command.args = {"--metainfo", (options.folder / "metainfo").string(),
                  "--folder",   options.folder.string(),
                  "--listen",   options.listen,
                  "--announce", announce_url};
  if (!wanted.empty()) {
    TRY_OK(io::writeFileAtomic(options.folder / "wanted", wanted));
    command.args.insert(command.args.end(), {"--wanted", (options.folder / "wanted").string()});
  }
  std::unique_ptr<Swarm> swarm(new Swarm());
  auto started = processes.start(std::move(command), options.folder / "log");
  swarm->options_ = std::move(options);
  swarm->table_ = std::move(table);
  swarm->wanted_ = wanted;
  if (!started) return fail(std::move(started).error());
  swarm->engine_ = std::move(*started);
  return swarm;
}

Swarm::~Swarm() {
  if (engine_) engine_->terminate(kEngineGrace);
  if (progress_) ::munmap(progress_, progress_bytes_);
  std::error_code ignored;
  fs::remove_all(options_.folder, ignored);
}

bool Swarm::alive() { return engine_->running(); }

/// The engine makes the shared progress when it has started, the magic last.
bool Swarm::ready() {
  if (progress_) return true;
  const io::Fd file(::open((options_.folder / kProgressFile).c_str(), O_RDWR | O_CLOEXEC));
  struct stat about{};
  if (!file.valid() || ::fstat(file.get(), &about) != 0 ||
      static_cast<std::size_t>(about.st_size) <= sizeof(SharedProgress))
    return false;
  const auto size = static_cast<std::size_t>(about.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return false;
  auto* progress = static_cast<SharedProgress*>(memory);
  const bool made = std::memcmp(progress->magic, kProgressMagic, sizeof progress->magic) == 0;
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!made || progressBytes(progress->pieces) != size || progress->pieces != table_.pieces() ||
      progress->piece_bytes != table_.piece_bytes) {
    ::munmap(memory, size);
    return false;
  }
  progress_ = progress;
  progress_bytes_ = size;
  return true;
}

std::uint32_t Swarm::have() {
  return ready() ? progress_->have.load(std::memory_order_acquire) : 0;
}

bool Swarm::has(std::uint64_t offset, std::uint64_t length) {
  if (!ready() || length == 0 || offset + length > table_.pack_bytes) return false;
  const std::uint64_t last = (offset + length - 1) / progress_->piece_bytes;
  for (std::uint64_t piece = offset / progress_->piece_bytes; piece <= last; ++piece)
    if (marksOf(progress_)[piece].load(std::memory_order_acquire) != kHave) return false;
  return true;
}

Result<std::string> Swarm::read(std::uint64_t offset, std::uint64_t length) const {
  const io::Fd file(::open((options_.folder / kStoreFile).c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(length, '\0');
  std::size_t done = 0;
  while (file.valid() && done < bytes.size()) {
    const auto got = ::pread(file.get(), bytes.data() + done, bytes.size() - done,
                             static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  if (done < bytes.size())
    return fail(ErrorCode::Internal, fmt::format("{}: {} bytes at {} cannot be read: {}",
                                                 (options_.folder / kStoreFile).string(), length,
                                                 offset, std::strerror(errno)));
  return bytes;
}

std::string Swarm::unneeded() {
  if (!ready()) return {};
  std::string bits((progress_->pieces + 7) / 8, '\0');
  for (std::uint32_t i = 0; i < progress_->pieces; ++i) {
    const bool lacking = marksOf(progress_)[i].load(std::memory_order_relaxed) == kLacking &&
                         (wanted_.empty() || wanted_[i] != 0);
    if (!lacking)
      bits[i / 8] = static_cast<char>(static_cast<unsigned char>(bits[i / 8]) | 0x80u >> i % 8);
  }
  return bits;
}

Result<void> Swarm::offer(std::uint32_t first, std::string_view bytes) {
  if (!ready()) return fail(ErrorCode::Internal, "the engine is not there yet");
  const io::Fd file(::open((options_.folder / kStoreFile).c_str(), O_WRONLY | O_CLOEXEC));
  std::uint32_t piece = first;
  for (std::size_t at = 0; at < bytes.size() && piece < table_.pieces();
       ++piece, at += table_.piece_bytes) {
    const auto content = bytes.substr(at, table_.piece_bytes);
    if (io::sha1(content) !=
        table_.sha1.substr(std::size_t{piece} * wire::kPieceHashBytes, wire::kPieceHashBytes))
      return fail(ErrorCode::Corrupt,
                  fmt::format("piece {} of the pack is corrupt as it arrives", piece));
    auto& mark = marksOf(progress_)[piece];
    if (mark.load(std::memory_order_acquire) != kLacking) continue;  // a peer was faster
    const auto offset = static_cast<off_t>(std::uint64_t{piece} * table_.piece_bytes);
    if (!file.valid() || ::pwrite(file.get(), content.data(), content.size(), offset) !=
                             static_cast<ssize_t>(content.size()))
      return fail(ErrorCode::Internal,
                  fmt::format("{} cannot be written: {}", (options_.folder / kStoreFile).string(),
                              std::strerror(errno)));
    auto lacking = kLacking;
    mark.compare_exchange_strong(lacking, kOffered, std::memory_order_release);
  }
  return {};
}

SwarmStatus Swarm::status() {
  if (!ready()) return {};
  return {progress_->pieces, progress_->have,       progress_->connected, progress_->wrong_pieces,
          progress_->banned, progress_->from_peers, progress_->uploaded};
}

}  // namespace muster::agent
