// SPDX-License-Identifier: Apache-2.0
// Peer to peer for nodes that are imaged right now: what a node's task says of it, and the routes
// behind that.
//
//   GET  /peers/WORD/metainfo            the .torrent
//   GET  /peers/WORD/announce?…          the tracker (tracker.h)
//   POST /peers/WORD/share?count=N       which pieces to fetch from a server (shares.h):
//   {"first","count"}, or {} for none now
//
// WORD follows from the node, the image and a secret of the controller, and comes to the node in
// its task over mutual TLS. It opens the routes only while the phase images that node with that
// image (each look renews it), and only from that node's address. So neither an unknown host nor a
// node that runs already learns who is imaged or takes a share; after kill -9 the same words are
// good again.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/io/http.h"
#include "inventory/model/fwd.h"
#include "wire/write_image.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

struct PackedImage;

inline constexpr std::chrono::seconds kAdmittedFor{
    120};  ///< after the phase last looked at the node

class PeerService {
 public:
  virtual ~PeerService() = default;
  /// What the task says of peers; admits the node. Nothing while the image's metainfo is being made
  /// (in the background; ask again), or when it cannot be: then the node fetches by HTTP alone.
  virtual std::optional<wire::PeerParams> offer(const inventory::Node& node,
                                                const PackedImage& image) = 0;
  virtual void dismiss(const NodeName& node) = 0;
  virtual std::vector<io::Route> routes() = 0;
};

struct PeerServiceOptions {
  std::string http_url;  ///< "http://10.20.0.1:8080"
  std::string secret;    ///< never leaves the controller; the same after a restart
};
std::unique_ptr<PeerService> makePeerService(const inventory::Cluster& cluster, Clock& clock,
                                             PeerServiceOptions options);

}  // namespace muster::provision
