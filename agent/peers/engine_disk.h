// SPDX-License-Identifier: Apache-2.0
// Where muster-peer keeps pieces: one file, mapped into memory. The file lies in the RAM disk, so a
// thread pool, a cache and read-ahead (libtorrent's own disk back ends) would only cost time; and a
// piece that is announced as there must really be in the file, because another process reads it. So
// everything is done at once, on the network thread.
#pragma once

#include <libtorrent/add_torrent_params.hpp>
#include <libtorrent/disk_buffer_holder.hpp>
#include <libtorrent/disk_interface.hpp>
#include <libtorrent/hasher.hpp>
#include <libtorrent/io_context.hpp>
#include <libtorrent/peer_request.hpp>
#include <libtorrent/session_params.hpp>
#include <libtorrent/storage_defs.hpp>

#include <cstdint>
#include <filesystem>

namespace muster::peer {

namespace lt = libtorrent;

/// The mapped file. Throws std::system_error: this program has nobody to ask.
class Store {
 public:
  Store(const std::filesystem::path& file, std::uint64_t size_bytes, int piece_bytes);
  Store(const Store&) = delete;
  ~Store();
  char* at(std::uint64_t offset) const { return memory_ + offset; }
  char* piece(lt::piece_index_t index) const {
    return at(static_cast<std::uint64_t>(static_cast<int>(index)) *
              static_cast<std::uint64_t>(piece_bytes_));
  }
  /// The last piece is shorter.
  int bytesOf(lt::piece_index_t index) const;
  /// Whether [piece·size + start, … + length) lies inside.
  bool holds(const lt::peer_request& request) const;

 private:
  char* memory_ = nullptr;
  std::uint64_t size_bytes_;
  int piece_bytes_;
};

/// For lt::session_params::disk_io_constructor. `store` outlives the session.
lt::disk_io_constructor_type mappedDisk(const Store& store);

}  // namespace muster::peer
