// SPDX-License-Identifier: Apache-2.0
#include "agent/peers/engine_disk.h"

#include <libtorrent/disk_observer.hpp>
#include <libtorrent/error_code.hpp>
#include <libtorrent/span.hpp>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace muster::peer {

Store::Store(const std::filesystem::path& file, std::uint64_t size_bytes, int piece_bytes)
    : size_bytes_(size_bytes), piece_bytes_(piece_bytes) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), file.string());
  void* memory = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(size_bytes)) == 0)
    memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  ::close(fd);
  if (memory == MAP_FAILED) throw std::system_error(error, std::generic_category(), file.string());
  memory_ = static_cast<char*>(memory);
}

Store::~Store() { ::munmap(memory_, size_bytes_); }

int Store::bytesOf(lt::piece_index_t index) const {
  const auto start = static_cast<std::uint64_t>(static_cast<int>(index)) *
                     static_cast<std::uint64_t>(piece_bytes_);
  return static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(piece_bytes_), size_bytes_ - start));
}

bool Store::holds(const lt::peer_request& request) const {
  const int piece = static_cast<int>(request.piece);
  if (piece < 0 || request.start < 0 || request.length < 0) return false;
  const auto start = static_cast<std::uint64_t>(piece) * static_cast<std::uint64_t>(piece_bytes_) +
                     static_cast<std::uint64_t>(request.start);
  return start + static_cast<std::uint64_t>(request.length) <= size_bytes_;
}

namespace {

lt::storage_error outside() {
  return lt::storage_error(
      lt::error_code(boost::system::errc::invalid_argument, lt::generic_category()));
}

/// One torrent, so the storage index says nothing.
class MappedDisk final : public lt::disk_interface, lt::buffer_allocator_interface {
 public:
  MappedDisk(lt::io_context& loop, const Store& store) : loop_(loop), store_(store) {}

  lt::storage_holder new_torrent(const lt::storage_params&, const std::shared_ptr<void>&) override {
    return lt::storage_holder(lt::storage_index_t{0}, *this);
  }
  void remove_torrent(lt::storage_index_t) override {}

  void async_read(lt::storage_index_t, const lt::peer_request& r,
                  std::function<void(lt::disk_buffer_holder, const lt::storage_error&)> handler,
                  lt::disk_job_flags_t) override {
    post(loop_, [this, r, handler = std::move(handler)] {
      if (!store_.holds(r)) return handler(lt::disk_buffer_holder(*this, nullptr, 0), outside());
      handler(lt::disk_buffer_holder(*this, store_.piece(r.piece) + r.start, r.length),
              lt::storage_error{});  // sent from the mapping itself
    });
  }

  bool async_write(lt::storage_index_t, const lt::peer_request& r, const char* buffer,
                   std::shared_ptr<lt::disk_observer>,
                   std::function<void(const lt::storage_error&)> handler,
                   lt::disk_job_flags_t) override {
    const bool fits = store_.holds(r);
    if (fits)
      std::memcpy(store_.piece(r.piece) + r.start, buffer, static_cast<std::size_t>(r.length));
    post(loop_,
         [fits, handler = std::move(handler)] { handler(fits ? lt::storage_error{} : outside()); });
    return false;
  }

  void async_hash(
      lt::storage_index_t, lt::piece_index_t piece, lt::span<lt::sha256_hash> blocks,
      lt::disk_job_flags_t flags,
      std::function<void(lt::piece_index_t, const lt::sha1_hash&, const lt::storage_error&)>
          handler) override {
    post(loop_, [this, piece, blocks, flags, handler = std::move(handler)] {
      const int length = store_.bytesOf(piece);
      for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
        const int start = i * lt::default_block_size;
        blocks[i] = lt::hasher256(store_.piece(piece) + start,
                                  std::min(lt::default_block_size, length - start))
                        .final();
      }
      const bool v1 = bool(flags & lt::disk_interface::v1_hash);
      handler(piece, v1 ? lt::hasher(store_.piece(piece), length).final() : lt::sha1_hash(),
              lt::storage_error{});
    });
  }

  void async_hash2(
      lt::storage_index_t, lt::piece_index_t piece, int offset, lt::disk_job_flags_t,
      std::function<void(lt::piece_index_t, const lt::sha256_hash&, const lt::storage_error&)>
          handler) override {
    post(loop_, [this, piece, offset, handler = std::move(handler)] {
      const int length = std::min(lt::default_block_size, store_.bytesOf(piece) - offset);
      handler(piece, lt::hasher256(store_.piece(piece) + offset, length).final(),
              lt::storage_error{});
    });
  }

  void async_check_files(
      lt::storage_index_t, const lt::add_torrent_params*,
      lt::aux::vector<std::string, lt::file_index_t>,
      std::function<void(lt::status_t, const lt::storage_error&)> handler) override {
    post(loop_,
         [handler = std::move(handler)] { handler(lt::status_t::no_error, lt::storage_error{}); });
  }

  // What a mapped file in a folder of its own never needs.
  void async_move_storage(
      lt::storage_index_t, std::string path, lt::move_flags_t,
      std::function<void(lt::status_t, const std::string&, const lt::storage_error&)> handler)
      override {
    post(loop_, [path = std::move(path), handler = std::move(handler)] {
      handler(lt::status_t::fatal_disk_error, path, outside());
    });
  }
  void async_release_files(lt::storage_index_t, std::function<void()> handler) override {
    if (handler) post(loop_, std::move(handler));
  }
  void async_stop_torrent(lt::storage_index_t, std::function<void()> handler) override {
    if (handler) post(loop_, std::move(handler));
  }
  void async_rename_file(
      lt::storage_index_t, lt::file_index_t file, std::string name,
      std::function<void(const std::string&, lt::file_index_t, const lt::storage_error&)> handler)
      override {
    post(loop_, [file, name = std::move(name), handler = std::move(handler)] {
      handler(name, file, outside());
    });
  }
  void async_delete_files(lt::storage_index_t, lt::remove_flags_t,
                          std::function<void(const lt::storage_error&)> handler) override {
    post(loop_, [handler = std::move(handler)] { handler(lt::storage_error{}); });
  }
  void async_set_file_priority(
      lt::storage_index_t, lt::aux::vector<lt::download_priority_t, lt::file_index_t> priorities,
      std::function<void(const lt::storage_error&,
                         lt::aux::vector<lt::download_priority_t, lt::file_index_t>)>
          handler) override {
    post(loop_, [priorities = std::move(priorities), handler = std::move(handler)]() mutable {
      handler(lt::storage_error{}, std::move(priorities));
    });
  }
  void async_clear_piece(lt::storage_index_t, lt::piece_index_t piece,
                         std::function<void(lt::piece_index_t)> handler) override {
    post(loop_, [piece, handler = std::move(handler)] { handler(piece); });
  }
  void update_stats_counters(lt::counters&) const override {}
  std::vector<lt::open_file_state> get_status(lt::storage_index_t) const override { return {}; }
  void abort(bool) override {}
  void submit_jobs() override {}
  void settings_updated() override {}

 private:
  void free_disk_buffer(char*) override {}  // buffers point into the mapping

  lt::io_context& loop_;
  const Store& store_;
};

}  // namespace

lt::disk_io_constructor_type mappedDisk(const Store& store) {
  return [&store](lt::io_context& loop, const lt::settings_interface&, lt::counters&) {
    return std::make_unique<MappedDisk>(loop, store);
  };
}

}  // namespace muster::peer
