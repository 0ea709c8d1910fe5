// SPDX-License-Identifier: Apache-2.0
#include "agent/peers/peer_client.h"

#include "base/io/memory.h"
#include "base/json_input.h"
#include "base/log.h"
#include "wire/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace muster::agent {

namespace {

constexpr std::chrono::seconds kMetainfoTimeout{10};
constexpr std::size_t kMaxMetainfoBytes = 64u << 20;
constexpr std::uint64_t kLeastSwarmBytes = 4u
                                           << 20;  ///< for less than that, nobody is asked to share
constexpr int kShareLanes = 2;                     ///< one is sent while another is asked for
constexpr std::chrono::seconds kShareTimeout{10};
constexpr std::size_t kMaxAnswerBytes = 4096, kMaxShareBytes = 4u << 20;
constexpr std::chrono::milliseconds kShortShare{100},
    kLongShare{400};  ///< a share takes between them, so that it soon has something to give
constexpr std::size_t kErrorPageBytes = 64u << 10;

/// As requests spell them: with their port.
std::vector<std::string> canonical(std::vector<std::string> urls) {
  for (auto& text : urls)
    if (const auto url = io::Url::parse(text)) text = url->str();
  return urls;
}

class PeerClient final : public io::HttpClient {
 public:
  PeerClient(PeerSource& source, std::unique_ptr<io::HttpClient> servers)
      : source_(source), servers_(std::move(servers)) {}
  Async<io::HttpResponse> send(io::HttpRequest request) override {
    return source_.send(std::move(request), servers_.get());
  }
  Async<io::HttpResponse> fetch(io::HttpRequest request,
                                std::function<Result<void>(std::string_view)> sink) override {
    return servers_->fetch(std::move(request), std::move(sink));
  }
  std::string peerFingerprint() const override { return servers_->peerFingerprint(); }

 private:
  PeerSource& source_;
  std::unique_ptr<io::HttpClient> servers_;
};

}  // namespace

PeerSource::PeerSource(wire::PeerParams params, std::vector<std::string> urls, PeerOptions options,
                       io::ProcessRunner& processes, Clock& clock, MakeHttp make_http)
    : params_(std::move(params)),
      urls_(canonical(std::move(urls))),
      urls_to_share_(urls_),
      options_(std::move(options)),
      processes_(processes),
      clock_(clock),
      make_http_(std::move(make_http)) {}

PeerSource::~PeerSource() = default;

std::unique_ptr<io::HttpClient> PeerSource::client() {
  return std::make_unique<PeerClient>(*this, make_http_());
}

void PeerSource::scanned(const wire::PackIndex& index, const std::vector<char>& right) {
  std::vector<Range> wanted;
  wanted_bytes_ = 0;
  for (std::size_t i = 0; i < index.chunks.size() && i < right.size(); ++i) {
    const auto& chunk = index.chunks[i];
    if (chunk.zero || right[i]) continue;
    wanted_bytes_ += chunk.length;
    if (!wanted.empty() && wanted.back().offset + wanted.back().length == chunk.offset)
      wanted.back().length += chunk.length;
    else
      wanted.push_back({chunk.offset, chunk.length});
  }
  wanted_ = std::move(wanted);
}

PeerReport PeerSource::report() const {
  PeerReport report = report_;
  if (swarm_) report.status = swarm_->status();
  return report;
}

std::optional<PeerSource::Range> PeerSource::rangeOf(const io::HttpRequest& request) const {
  const auto header = request.headers.find("Range");
  if (request.method != "GET" || header == request.headers.end() ||
      std::find(urls_.begin(), urls_.end(), request.url.str()) == urls_.end())
    return std::nullopt;
  unsigned long first = 0, last = 0;
  if (std::sscanf(header->second.c_str(), "bytes=%lu-%lu", &first, &last) != 2 || last < first ||
      last >= params_.pack_bytes)
    return std::nullopt;
  return Range{first, last - first + 1};
}

bool PeerSource::askedBefore(Range range) {
  auto next = given_.upper_bound(range.offset);
  if (next != given_.end() && next->first < range.offset + range.length) return true;
  return next != given_.begin() && std::prev(next)->second > range.offset;
}

Async<io::HttpResponse> PeerSource::send(io::HttpRequest request, io::HttpClient* servers) {
  const auto range = rangeOf(request);
  if (range && askedBefore(*range)) leave("what it gave was asked for again, so it was not right");
  if (range && !tried_) {
    co_await join();
  }
  if (range && swarm_) {
    if (co_await arrives(*range, servers)) {
      auto bytes = swarm_->read(range->offset, range->length);
      if (bytes) {
        given_[range->offset] = range->offset + range->length;
        report_.served_bytes += range->length;
        io::HttpResponse response;
        response.status = 206;
        response.body = std::move(*bytes);
        co_return response;
      }
      leave(bytes.error().str());
    }
  }
  if (range) report_.asked_servers_bytes += range->length;
  co_return co_await servers->send(std::move(request));
}

/// Waits for the range as long as the swarm gets anywhere, and does this node's share meanwhile.
Task<bool> PeerSource::arrives(Range range, io::HttpClient* servers) {
  while (swarm_ && !swarm_->has(range.offset, range.length)) {
    if (!swarm_->alive()) {
      leave("its engine has ended");
      break;
    }
    const auto now = clock_.steady();
    if (const auto have = swarm_->have(); have != seen_have_) {
      seen_have_ = have;
      grew_ = now;
    }
    if (now - grew_ >= options_.patience)
      co_return false;  // it may come back; the next range looks again
    if (mayShare()) {
      co_await share(servers);
      continue;
    }
    co_await clock_.waitFor(options_.look_every);
  }
  co_return swarm_ != nullptr;
}

bool PeerSource::mayShare() const {
  return sharing_ < kShareLanes && clock_.steady() >= next_share_ && !urls_to_share_.empty() &&
         swarm_->ready();
}

/// One share: asked for, fetched, offered. What goes wrong is tried again a little later; the
/// writer does not depend on it.
Task<void> PeerSource::share(io::HttpClient* servers) {
  ++sharing_;
  const auto pieces = co_await askShare(servers);
  bool done = pieces && *pieces;
  if (done) {
    const auto fetched = co_await fetchShare(**pieces, servers);
    if (!fetched) logInfo("peers", "{}", fetched.error().str());
    done = fetched.has_value();
  }
  if (!done) next_share_ = clock_.steady() + options_.share_again;
  --sharing_;
}

/// In pieces. Nothing: the others bring what is missing.
Async<std::optional<PeerSource::Range>> PeerSource::askShare(io::HttpClient* servers) {
  CO_TRY(url, io::Url::parse(fmt::format("{}?count={}", params_.share_url, share_pieces_)));
  io::HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.body = swarm_->unneeded();
  request.timeout = kShareTimeout;
  request.max_body_bytes = kMaxAnswerBytes;
  if (request.body.empty()) co_return std::optional<Range>();
  CO_TRY(response, co_await servers->send(std::move(request)));
  const auto answer = jsonOrNone(response.body, kServerJson);
  if (response.status != 200 || !answer.is_object())
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} answers {}", params_.share_url, response.status));
  if (answer.empty() || !swarm_) co_return std::optional<Range>();
  wire::JsonReader reader(answer, "share");
  const Range pieces{reader.unsignedNumber("first", ~0u), reader.unsignedNumber("count", ~0u)};
  CO_TRY_OK(reader.finish());
  if (pieces.length == 0 || pieces.offset + pieces.length > swarm_->table().pieces())
    co_return fail(ErrorCode::Corrupt, "the controller gave pieces that are none");
  co_return std::optional(pieces);
}

Async<void> PeerSource::fetchShare(Range pieces, io::HttpClient* servers) {
  const auto& table = swarm_->table();
  const std::uint64_t piece_bytes = table.piece_bytes, offset = pieces.offset * piece_bytes,
                      length = std::min(pieces.length * piece_bytes, table.pack_bytes - offset);
  const std::string server = urls_to_share_[turn_++ % urls_to_share_.size()];
  CO_TRY(url, io::Url::parse(server));
  io::HttpRequest request;
  request.url = url;
  request.headers["Range"] = fmt::format("bytes={}-{}", offset, offset + length - 1);
  request.timeout = kShareTimeout;
  request.max_body_bytes = length + kErrorPageBytes;
  const auto begun = clock_.steady();
  CO_TRY(response, co_await servers->send(std::move(request)));
  if (response.status != 206 || response.body.size() != length)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} answers {} for pieces", server, response.status));
  if (!swarm_) co_return Result<void>();
  const auto offered = swarm_->offer(static_cast<std::uint32_t>(pieces.offset), response.body);
  if (!offered) {
    if (offered.error().code() == ErrorCode::Corrupt && std::erase(urls_to_share_, server) > 0)
      report_.corrupt_mirrors.push_back(fmt::format("{}: {}", server, offered.error().text()));
    co_return offered;
  }
  report_.shared_bytes += length;
  const auto took = clock_.steady() - begun;
  if (took < kShortShare && (share_pieces_ + 1) * piece_bytes <= kMaxShareBytes) ++share_pieces_;
  if (took > kLongShare && share_pieces_ > 1) --share_pieces_;
  co_return Result<void>();
}

void PeerSource::leave(std::string why) {
  if (!swarm_) return;
  logWarning("peers", "the swarm is left: {}", why);
  report_.status = swarm_->status();
  report_.why_not = std::move(why);
  swarm_.reset();
}

/// Once. Lanes that come meanwhile wait for it.
Task<void> PeerSource::join() {
  if (joining_) {
    while (!tried_) {
      co_await clock_.waitFor(options_.look_every);
    }
    co_return;
  }
  joining_ = true;
  const auto metainfo = co_await fetchMetainfo();
  const auto started = metainfo ? start(*metainfo) : fail(metainfo.error());
  if (!started) {
    report_.why_not = started.error().str();
    logInfo("peers", "the image comes by HTTP alone: {}", report_.why_not);
  }
  grew_ = clock_.steady();
  tried_ = true;
}

Async<std::string> PeerSource::fetchMetainfo() {
  const auto needed = wanted_ ? wanted_bytes_ : params_.pack_bytes;
  if (needed < kLeastSwarmBytes)
    co_return fail(ErrorCode::Unavailable, fmt::format("only {} KiB are needed", needed >> 10));
  if (const auto available = io::availableMemoryBytes(); !roomFor(needed, available))
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("pieces of {} MiB do not fit into half of the {} MiB of free memory",
                               needed >> 20, available >> 20));
  CO_TRY(url, io::Url::parse(params_.metainfo_url));
  io::HttpRequest request;
  request.url = url;
  request.timeout = kMetainfoTimeout;
  request.max_body_bytes = kMaxMetainfoBytes;
  auto http = make_http_();
  CO_TRY(response, co_await http->send(std::move(request)));
  if (response.status != 200)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} answers {}", params_.metainfo_url, response.status));
  if (io::sha256Hex(response.body) != params_.metainfo_sha256)
    co_return fail(ErrorCode::Corrupt, params_.metainfo_url + " is not what the task said");
  co_return std::move(response.body);
}

Result<void> PeerSource::start(std::string_view metainfo) {
  TRY(table, PieceTable::of(metainfo, params_.pack_bytes));
  std::string wanted;
  if (wanted_) {
    wanted.assign(table.pieces(), '\0');
    for (const auto& range : *wanted_)
      for (auto piece = range.offset / table.piece_bytes;
           piece <= (range.offset + range.length - 1) / table.piece_bytes && piece < wanted.size();
           ++piece)
        wanted[piece] = '\1';
  }
  auto swarm = Swarm::join(options_.swarm, std::move(table), metainfo, params_.announce_url, wanted,
                           processes_);
  if (!swarm) return fail(std::move(swarm).error());
  swarm_ = std::move(*swarm);
  report_.joined = true;
  return {};
}

}  // namespace muster::agent
