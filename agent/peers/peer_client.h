// SPDX-License-Identifier: Apache-2.0
// The pack by way of other nodes, behind the writer's own seam: an HttpClient that answers ranges
// of the pack with what the swarm has brought, and asks the servers for everything else. The writer
// knows nothing of it; whatever comes is verified by it.
//
// While a lane of the writer waits for its range, it fetches the share of the pack that the
// controller gives to this node from the servers and offers it to the swarm: that is how the pack
// gets into it (provision/peers/shares.h).
//
// HTTP is what is left when the swarm brings nothing: there is no engine, not enough memory, no
// tracker, the engine dies, or no piece at all came for a while. Once it brings pieces again, they
// are taken again. A range that is asked for a second time was not right (or its writer is anew):
// it comes from a server.
#pragma once

#include "agent/peers/swarm.h"
#include "base/clock.h"
#include "base/io/http.h"
#include "wire/pack_index.h"
#include "wire/write_image.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

struct PeerOptions {
  SwarmOptions swarm;
  std::chrono::milliseconds patience{4000};  ///< without any new piece, until servers are asked
  std::chrono::milliseconds look_every{20};
  std::chrono::milliseconds share_again{
      200};  ///< after the controller had nothing to give, or did not answer
};

/// Where the bytes of the pack came from.
struct PeerReport {
  bool joined = false;
  std::string why_not;                    ///< why there was no swarm, or why it was left
  std::uint64_t served_bytes = 0;         ///< by the swarm to the writer
  std::uint64_t asked_servers_bytes = 0;  ///< of ranges that the swarm could not give in time
  std::uint64_t shared_bytes = 0;         ///< fetched from servers for the swarm
  std::vector<std::string>
      corrupt_mirrors;  ///< servers whose pieces were wrong; not asked for shares any more
  SwarmStatus status;
};

class PeerSource {
 public:
  using MakeHttp = std::function<std::unique_ptr<io::HttpClient>()>;
  /// `urls`: all of the same pack. The swarm is joined when the first range is asked for.
  PeerSource(wire::PeerParams params, std::vector<std::string> urls, PeerOptions options,
             io::ProcessRunner& processes, Clock& clock, MakeHttp make_http);
  ~PeerSource();

  /// What the writer will ask for: chunks that are not right on the disk. Before the first range;
  /// otherwise everything.
  void scanned(const wire::PackIndex& index, const std::vector<char>& right);
  /// A client for one lane of the writer; the source must outlive it.
  std::unique_ptr<io::HttpClient> client();
  Async<io::HttpResponse> send(io::HttpRequest request, io::HttpClient* servers);
  PeerReport report() const;
  /// Nullptr before it is joined and after it was left.
  Swarm* swarm() { return swarm_.get(); }

 private:
  struct Range {
    std::uint64_t offset = 0, length = 0;
  };
  std::optional<Range> rangeOf(const io::HttpRequest& request) const;
  bool askedBefore(Range range);
  Task<void> join();
  Async<std::string> fetchMetainfo();
  Result<void> start(std::string_view metainfo);
  Task<bool> arrives(Range range, io::HttpClient* servers);
  bool mayShare() const;
  Task<void> share(io::HttpClient* servers);
  Async<std::optional<Range>> askShare(io::HttpClient* servers);
  Async<void> fetchShare(Range pieces, io::HttpClient* servers);
  void leave(std::string why);

  wire::PeerParams params_;
  std::vector<std::string> urls_, urls_to_share_;
  PeerOptions options_;
  io::ProcessRunner& processes_;
  Clock& clock_;
  MakeHttp make_http_;
  std::unique_ptr<Swarm> swarm_;
  std::optional<std::vector<Range>> wanted_;  ///< of the pack
  std::uint64_t wanted_bytes_ = 0;
  bool joining_ = false, tried_ = false;
  std::map<std::uint64_t, std::uint64_t> given_;  ///< offset → end, of ranges that the swarm gave
  std::uint32_t seen_have_ = 0;
  std::chrono::steady_clock::time_point
      grew_{};       ///< when the swarm last had more pieces than before
  int sharing_ = 0;  ///< lanes that fetch a share now
  std::chrono::steady_clock::time_point next_share_{};
  std::uint32_t share_pieces_ = 1;  ///< grows while servers are fast
  std::size_t turn_ = 0;            ///< servers take turns
  PeerReport report_;
};

}  // namespace muster::agent
