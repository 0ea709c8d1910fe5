// SPDX-License-Identifier: Apache-2.0
// muster-peer: one torrent, shared by libtorrent, in a process of its own. muster-agent starts it,
// watches the shared progress (shared_progress.h) and ends it; nothing it does is believed: the
// writer verifies every chunk against the signed index.
//
// A node is in one swarm, for minutes, among machines of its own hall. So: no DHT, no local
// discovery, no exchange of peers (who is there is the tracker's decision alone), and no slots and
// no choking by turns (a slot that is given up for ten seconds is most of an imaging). Web seeds
// are the agent's affair: what it fetches from servers it offers here (shared_progress.h).
#include "agent/peers/engine_disk.h"
#include "agent/peers/shared_progress.h"

#include <libtorrent/alert_types.hpp>
#include <libtorrent/extensions/smart_ban.hpp>
#include <libtorrent/peer_info.hpp>
#include <libtorrent/session.hpp>
#include <libtorrent/session_params.hpp>
#include <libtorrent/settings_pack.hpp>
#include <libtorrent/torrent_info.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace muster;
using namespace muster::peer;

constexpr std::chrono::milliseconds kAlertWait{20};  ///< also how long an offered piece may lie
constexpr std::chrono::milliseconds kStatsEvery{250};
constexpr std::chrono::seconds kFarewell{1};  ///< for the last announce
constexpr int kMaxConnections = 200;
constexpr int kShortestAnnounceSeconds = 2;
constexpr int kSendBufferBytes = 256 << 10;

volatile std::sig_atomic_t stopping = 0;

struct Arguments {
  std::string metainfo, folder, listen, announce, wanted;
  bool seed = false;  ///< the store file holds everything already
};

bool parse(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--seed") {
      out.seed = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const std::string value = argv[++i];
    if (word == "--metainfo")
      out.metainfo = value;
    else if (word == "--folder")
      out.folder = value;
    else if (word == "--listen")
      out.listen = value;
    else if (word == "--announce")
      out.announce = value;
    else if (word == "--wanted")
      out.wanted = value;
    else
      return false;
  }
  return !out.metainfo.empty() && !out.folder.empty() && !out.listen.empty();
}

/// The shared progress, made new: an agent that maps it earlier sees no magic yet.
class MappedProgress {
 public:
  MappedProgress(const std::string& file, std::uint32_t piece_bytes, std::uint32_t pieces)
      : size_(agent::progressBytes(pieces)) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void* memory = MAP_FAILED;
    if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(size_)) == 0)
      memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (memory == MAP_FAILED) throw std::system_error(error, std::generic_category(), file);
    progress_ = new (memory) agent::SharedProgress{};
    progress_->piece_bytes = piece_bytes;
    progress_->pieces = pieces;
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(progress_->magic, agent::kProgressMagic, sizeof progress_->magic);
  }
  MappedProgress(const MappedProgress&) = delete;
  ~MappedProgress() { ::munmap(progress_, size_); }
  agent::SharedProgress* operator->() { return progress_; }
  void have(std::uint32_t piece) {
    if (piece >= progress_->pieces || agent::marksOf(progress_)[piece].exchange(
                                          agent::kHave, std::memory_order_release) == agent::kHave)
      return;
    progress_->have.fetch_add(1, std::memory_order_release);
  }
  void lost(std::uint32_t piece) {
    if (piece < progress_->pieces)
      agent::marksOf(progress_)[piece].store(agent::kLacking, std::memory_order_release);
  }
  /// Pieces that the agent has put into the store file.
  std::vector<std::uint32_t> takeOffered() {
    std::vector<std::uint32_t> pieces;
    for (std::uint32_t i = 0; i < progress_->pieces; ++i) {
      auto offered = agent::kOffered;
      if (agent::marksOf(progress_)[i].compare_exchange_strong(offered, agent::kTaken,
                                                               std::memory_order_acquire))
        pieces.push_back(i);
    }
    return pieces;
  }

 private:
  std::size_t size_;
  agent::SharedProgress* progress_;
};

lt::settings_pack settings(const Arguments& arguments) {
  lt::settings_pack pack;
  using S = lt::settings_pack;
  pack.set_str(S::listen_interfaces, arguments.listen);
  const std::string address = arguments.listen.substr(0, arguments.listen.rfind(':'));
  if (address != "0.0.0.0") pack.set_str(S::outgoing_interfaces, address);
  pack.set_str(S::user_agent, "muster-peer");
  for (const int off : {S::enable_dht, S::enable_lsd, S::enable_upnp, S::enable_natpmp,
                        S::enable_outgoing_utp, S::enable_incoming_utp, S::smooth_connects,
                        S::ssrf_mitigation, S::rate_limit_ip_overhead, S::piece_extent_affinity})
    pack.set_bool(off, false);  // ssrf: tracker and web seeds are the controller's word, and lie in
                                // private networks
  pack.set_bool(S::close_redundant_connections, true);
  pack.set_bool(S::strict_end_game_mode, true);  // most pieces are with nobody yet: asking twice
                                                 // for the few that are would be all that peers do
  pack.set_int(S::out_enc_policy, S::pe_disabled);
  pack.set_int(S::in_enc_policy, S::pe_disabled);
  pack.set_int(S::unchoke_slots_limit, -1);
  pack.set_int(S::connections_limit, kMaxConnections);
  pack.set_int(S::connection_speed, kMaxConnections);
  pack.set_int(S::torrent_connect_boost, 255);
  pack.set_int(S::min_announce_interval, kShortestAnnounceSeconds);
  pack.set_int(S::min_reconnect_time, 2);
  pack.set_int(S::peer_connect_timeout, 4);
  pack.set_int(S::request_timeout, 5);
  pack.set_int(S::piece_timeout, 5);
  pack.set_int(S::request_queue_time, 1);
  pack.set_int(S::max_out_request_queue, 500);
  pack.set_int(S::send_buffer_watermark, kSendBufferBytes);
  pack.set_int(S::stop_tracker_timeout, 1);
  pack.set_int(S::alert_mask, lt::alert_category::piece_progress | lt::alert_category::status |
                                  lt::alert_category::error | lt::alert_category::peer |
                                  lt::alert_category::tracker);
  return pack;
}

/// One byte a piece, 0 where it is not needed.
std::vector<lt::download_priority_t> prioritiesOf(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<lt::download_priority_t> priorities;
  for (char mark = 0; stream.get(mark);)
    priorities.push_back(mark == 0 ? lt::dont_download : lt::default_priority);
  return priorities;
}

lt::add_torrent_params torrentOf(const Arguments& arguments) {
  lt::add_torrent_params torrent;
  torrent.ti = std::make_shared<lt::torrent_info>(arguments.metainfo);
  torrent.save_path = arguments.folder;
  torrent.trackers.clear();
  if (!arguments.announce.empty()) torrent.trackers.push_back(arguments.announce);
  torrent.flags &= ~(lt::torrent_flags::auto_managed | lt::torrent_flags::paused);
  torrent.flags |= lt::torrent_flags::disable_dht | lt::torrent_flags::disable_lsd |
                   lt::torrent_flags::disable_pex | lt::torrent_flags::override_trackers |
                   lt::torrent_flags::override_web_seeds;
  if (!arguments.wanted.empty()) torrent.piece_priorities = prioritiesOf(arguments.wanted);
  if (arguments.seed) torrent.flags |= lt::torrent_flags::seed_mode;
  return torrent;
}

void note(MappedProgress& progress, const lt::alert& alert) {
  if (const auto* finished = lt::alert_cast<lt::piece_finished_alert>(&alert)) {
    progress.have(static_cast<std::uint32_t>(static_cast<int>(finished->piece_index)));
  } else if (const auto* wrong = lt::alert_cast<lt::hash_failed_alert>(&alert)) {
    progress->wrong_pieces.fetch_add(1);
    progress.lost(static_cast<std::uint32_t>(static_cast<int>(wrong->piece_index)));
  } else if (lt::alert_cast<lt::peer_ban_alert>(&alert)) {
    progress->banned.fetch_add(1);
    std::fprintf(stderr, "%s\n", alert.message().c_str());
  } else if (lt::alert_cast<lt::tracker_error_alert>(&alert) ||
             lt::alert_cast<lt::listen_failed_alert>(&alert) ||
             lt::alert_cast<lt::torrent_error_alert>(&alert)) {
    std::fprintf(stderr, "%s\n", alert.message().c_str());
  }
}

void look(const lt::torrent_handle& torrent, MappedProgress& progress) {
  std::vector<lt::peer_info> peers;
  torrent.get_peer_info(peers);
  const auto there = [](const lt::peer_info& peer) {
    return !(peer.flags & (lt::peer_info::connecting | lt::peer_info::handshake));
  };
  const auto status = torrent.status(lt::torrent_handle::query_pieces);
  for (const auto piece : status.pieces.range())  // should a word of it have been lost
    if (status.pieces[piece]) progress.have(static_cast<std::uint32_t>(static_cast<int>(piece)));
  progress->connected.store(
      static_cast<std::uint32_t>(std::count_if(peers.begin(), peers.end(), there)));
  progress->from_peers.store(static_cast<std::uint64_t>(status.total_payload_download));
  progress->uploaded.store(static_cast<std::uint64_t>(status.total_payload_upload));
}

/// The hash is looked at as that of any other piece, then peers are told.
void add(const lt::torrent_handle& torrent, const Store& store, MappedProgress& progress) {
  for (const auto index : progress.takeOffered()) {
    const lt::piece_index_t piece(static_cast<int>(index));
    torrent.add_piece(
        piece, std::vector<char>(store.piece(piece), store.piece(piece) + store.bytesOf(piece)));
  }
}

void share(const Arguments& arguments) {
  auto torrent = torrentOf(arguments);
  const auto& info = *torrent.ti;
  if (info.num_files() != 1 || !info.v1())
    throw std::runtime_error("the metainfo is not of one file, version 1");
  const Store store(arguments.folder + "/" + agent::kStoreFile,
                    static_cast<std::uint64_t>(info.total_size()), info.piece_length());
  MappedProgress progress(arguments.folder + "/" + agent::kProgressFile,
                          static_cast<std::uint32_t>(info.piece_length()),
                          static_cast<std::uint32_t>(info.num_pieces()));
  if (arguments.seed)
    for (int i = 0; i < info.num_pieces(); ++i) progress.have(static_cast<std::uint32_t>(i));

  lt::session_params params(settings(arguments));
  params.disk_io_constructor = mappedDisk(store);
  params.extensions.clear();
  lt::session session(std::move(params));
  session.add_extension(&lt::create_smart_ban_plugin);  // whoever sent a wrong block is found out
  const auto handle = session.add_torrent(std::move(torrent));
  bool ready = false;  // before that, pieces would be lost
  auto next_look = std::chrono::steady_clock::now();
  std::vector<lt::alert*> alerts;
  while (stopping == 0) {
    session.wait_for_alert(kAlertWait);
    session.pop_alerts(&alerts);
    for (const auto* alert : alerts) {
      note(progress, *alert);
      ready = ready || lt::alert_cast<lt::torrent_checked_alert>(alert);
    }
    if (ready) add(handle, store, progress);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look) continue;
    look(handle, progress);
    next_look = now + kStatsEvery;
  }
  handle.pause();  // tells the tracker
  const auto until = std::chrono::steady_clock::now() + kFarewell;
  bool announced = arguments.announce.empty();
  while (!announced && std::chrono::steady_clock::now() < until) {
    session.wait_for_alert(kAlertWait);
    session.pop_alerts(&alerts);
    for (const auto* alert : alerts)
      announced = announced || lt::alert_cast<lt::tracker_reply_alert>(alert) ||
                  lt::alert_cast<lt::tracker_error_alert>(alert);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: muster-peer --metainfo FILE --folder FOLDER --listen ADDRESS:PORT "
                 "[--announce URL] [--wanted FILE] [--seed]\n");
    return 2;
  }
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { stopping = 1; });
  try {
    share(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster-peer: %s\n", error.what());
    return 1;
  }
  return 0;
}
