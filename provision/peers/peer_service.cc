// SPDX-License-Identifier: Apache-2.0
#include "provision/peers/peer_service.h"

#include "base/ip_address.h"

#include "base/json_output.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric_positions.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/peers/metainfo.h"
#include "provision/peers/shares.h"
#include "provision/peers/tracker.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <charconv>
#include <future>

namespace muster::provision {

namespace {

constexpr std::chrono::seconds kSweepEvery{10};
constexpr std::size_t kMaxBitsBytes = 64u << 10;
constexpr std::string_view kRoot = "/peers/";

/// Nodes of one scalable unit of a fabric are one pod.
std::map<NodeName, Place> placesOf(const inventory::Cluster& cluster) {
  std::map<NodeName, Place> places;
  const auto units = inventory::scalableUnitsOf(cluster);
  for (const auto& node : cluster.nodes) {
    Place place{node.rack, {}};
    if (const auto unit = units.find(node.name); unit != units.end()) place.pod = unit->second;
    places[node.name] = std::move(place);
  }
  return places;
}

class Service final : public PeerService {
 public:
  Service(const inventory::Cluster& cluster, Clock& clock, PeerServiceOptions options)
      : places_(placesOf(cluster)),
        clock_(clock),
        options_(std::move(options)),
        tracker_(std::hash<std::string>{}(options_.secret)) {}
  ~Service() override { stop_ = true; }

  std::optional<wire::PeerParams> offer(const inventory::Node& node,
                                        const PackedImage& image) override;
  void dismiss(const NodeName& node) override;
  std::vector<io::Route> routes() override {
    const auto admit = [this](const io::ServerRequest& head) -> io::Admission {
      if (admissionOf(head)) return {kMaxBitsBytes, std::nullopt};
      return {0, io::ServerResponse::text(403, announceRefusal("not a node that is being imaged"))};
    };
    return {{"*", std::string(kRoot),
             [this](io::ServerRequest request) { return serve(std::move(request)); }, admit}};
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kTryAgain{10};
  struct Admission {
    NodeName node;
    Ipv4 address;
    std::string digest;
    Time until{};
  };
  struct SharedImage {
    std::optional<Metainfo> metainfo;
    std::optional<Shares> shares;
    std::future<Result<Metainfo>> making;
    Time try_again{};  ///< after a failure: a full disk, say
  };

  std::string wordOf(const NodeName& node, const std::string& digest) const;
  SharedImage& shared(const PackedImage& image);
  void sweep();
  Task<io::ServerResponse> serve(io::ServerRequest request);
  const Admission* admissionOf(const io::ServerRequest& request) const;
  io::ServerResponse answer(const io::ServerRequest& request);
  io::ServerResponse announce(const io::ServerRequest& request, const Admission& admission,
                              Ipv4 from);
  io::ServerResponse share(const io::ServerRequest& request, SharedImage& image);

  std::map<NodeName, Place> places_;
  Clock& clock_;
  PeerServiceOptions options_;
  Tracker tracker_;
  std::atomic<bool> stop_ = false;
  std::map<std::string, SharedImage>
      images_;  ///< by digest; bounded by the images of the inventory
  std::map<std::string, Admission> admissions_;  ///< by word
  Time next_sweep_{};
};

/// Nested, so that nobody can lengthen a word into another (HMAC's reason).
std::string Service::wordOf(const NodeName& node, const std::string& digest) const {
  return io::sha256Hex(
             options_.secret +
             io::sha256Hex(fmt::format("{}\npeers/1\n{}\n{}", options_.secret, node.str(), digest)))
      .substr(0, 40);
}

Service::SharedImage& Service::shared(const PackedImage& image) {
  auto& shared = images_[image.digest];
  if (shared.metainfo || clock_.steady() < shared.try_again) return shared;
  if (!shared.making.valid()) {
    const auto file =
        image.pack.parent_path() / fmt::format("peers-{}.torrent", image.digest.substr(0, 16));
    shared.making = std::async(std::launch::async, [this, file, pack = image.pack] {
      return keptMetainfo(file, pack, stop_);
    });
  }
  if (shared.making.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return shared;
  auto made = shared.making.get();
  if (made) {
    shared.shares.emplace(made->pieces);
    shared.metainfo = std::move(*made);
  } else {
    logWarning("peers", "image {} cannot be shared among nodes now: {}", image.name,
               made.error().str());
    shared.try_again = clock_.steady() + kTryAgain;
  }
  return shared;
}

std::optional<wire::PeerParams> Service::offer(const inventory::Node& node,
                                               const PackedImage& image) {
  const auto& ready = shared(image);
  sweep();
  if (!ready.metainfo) return std::nullopt;
  const auto word = wordOf(node.name, image.digest);
  admissions_[word] = {node.name, node.address, image.digest, clock_.steady() + kAdmittedFor};
  const auto base = fmt::format("{}{}{}", options_.http_url, kRoot, word);
  return wire::PeerParams{.metainfo_url = base + "/metainfo",
                          .metainfo_sha256 = ready.metainfo->sha256,
                          .announce_url = base + "/announce",
                          .share_url = base + "/share",
                          .pack_bytes = ready.metainfo->pack_bytes};
}

void Service::dismiss(const NodeName& node) {
  std::erase_if(admissions_, [&node](const auto& entry) { return entry.second.node == node; });
  tracker_.forget(node);
}

void Service::sweep() {
  const auto now = clock_.steady();
  if (now < next_sweep_) return;
  next_sweep_ = now + kSweepEvery;
  for (auto entry = admissions_.begin(); entry != admissions_.end();) {
    if (entry->second.until > now) {
      ++entry;
      continue;
    }
    tracker_.forget(entry->second.node);
    entry = admissions_.erase(entry);
  }
}

Task<io::ServerResponse> Service::serve(io::ServerRequest request) { co_return answer(request); }

/// The node whose word the path begins with, when it is what calls.
const Service::Admission* Service::admissionOf(const io::ServerRequest& request) const {
  const auto path = request.path().substr(kRoot.size());
  const auto admitted = admissions_.find(path.substr(0, path.find('/')));
  const auto from = Ipv4::parse(request.remote_address);
  const bool may = admitted != admissions_.end() && admitted->second.until > clock_.steady() &&
                   from &&
                   (admitted->second.address.value() == 0 || admitted->second.address == *from);
  return may ? &admitted->second : nullptr;
}

io::ServerResponse Service::answer(const io::ServerRequest& request) {
  const auto path = request.path().substr(kRoot.size());
  const auto slash = path.find('/');
  const auto* admitted = admissionOf(request);
  if (!admitted)
    return io::ServerResponse::text(403, announceRefusal("not a node that is being imaged"));
  const auto from = Ipv4::parse(request.remote_address);
  auto& image = images_[admitted->digest];
  const auto what = slash == std::string::npos ? std::string() : path.substr(slash + 1);
  if (what == "metainfo" && request.method == "GET") {
    auto response = io::ServerResponse::text(200, image.metainfo->bytes);
    response.headers["Content-Type"] = "application/x-bittorrent";
    return response;
  }
  if (what == "announce" && request.method == "GET") return announce(request, *admitted, *from);
  if (what == "share" && request.method == "POST") return share(request, image);
  return io::ServerResponse::text(404, "no such thing\n");
}

io::ServerResponse Service::announce(const io::ServerRequest& request, const Admission& admission,
                                     Ipv4 from) {
  auto said = parseAnnounce(request.target);
  if (said && said->info_hash != images_[admission.digest].metainfo->info_hash)
    said = fail(ErrorCode::InvalidInput, "announce: info_hash is of another image");
  if (!said) return io::ServerResponse::text(400, announceRefusal(said.error().text()));
  const auto now = clock_.steady();
  const auto peers = tracker_.announce(admission.node, places_[admission.node], from, *said, now);
  return io::ServerResponse::text(200, announceAnswer(peers, tracker_.count(said->info_hash, now)));
}

io::ServerResponse Service::share(const io::ServerRequest& request, SharedImage& image) {
  const auto query = io::queryOf(request.target);
  std::uint32_t most = 0;
  const auto count = query.contains("count") ? query.at("count") : std::string();
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), most);
  if (error != std::errc() || end != count.data() + count.size() || most == 0 ||
      request.body.size() > kMaxBitsBytes)
    return io::ServerResponse::text(400, "share: count is no number, or the body is too long\n");
  const auto share = image.shares->next(request.body, most, clock_.steady());
  return io::ServerResponse::json(
      200,
      share ? jsonText(nlohmann::json{{"first", share->first}, {"count", share->count}}) : "{}");
}

}  // namespace

std::unique_ptr<PeerService> makePeerService(const inventory::Cluster& cluster, Clock& clock,
                                             PeerServiceOptions options) {
  return std::make_unique<Service>(cluster, clock, std::move(options));
}

}  // namespace muster::provision
