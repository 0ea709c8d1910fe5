// SPDX-License-Identifier: Apache-2.0
#include "signer/signer_server.h"

#include "base/io/files.h"
#include "base/io/json_lines.h"
#include "base/io/peer_credentials.h"
#include "base/io/spawn.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/log.h"
#include "signer/forms.h"
#include "signer/key_files.h"
#include "signer/local_signer.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>

namespace muster::signer {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A list of revocations, escaped as a JSON text.
constexpr std::size_t kMaxLineBytes = 2 * kMaxListBytes;
constexpr JsonLimits kSignerJson{"the request to the signer", kMaxLineBytes,      4, 256,
                                 DuplicateKeys::Refused,      BrokenUtf8::Refused};
constexpr milliseconds kSendLimit{1'000};
constexpr std::int64_t kMaxHours = 24 * 366 * 10;
/// Who was refused stays for so long, or until he hangs up: a connection that is closed before it
/// was read is a reset one for its other side, which then may never see the words.
constexpr milliseconds kRefusedStay{1'000};
constexpr std::size_t kMaxRefused = 8;  ///< the oldest goes

class Allowance {
 public:
  explicit Allowance(SigningRate rate) : rate_(rate), left_(rate.at_once) {}
  bool take() {
    const auto now = steady_clock::now();
    left_ =
        std::min(rate_.at_once,
                 left_ + rate_.each_second *
                             std::chrono::duration<double>(now - std::exchange(at_, now)).count());
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  SigningRate rate_;
  double left_;
  steady_clock::time_point at_ = steady_clock::now();
};

struct Asker {
  Asker(io::Fd opened, io::PeerCredentials who)
      : fd(std::move(opened)), lines(fd.get(), kMaxLineBytes), peer(std::move(who)) {}
  io::Fd fd;
  io::LineReader lines;
  io::PeerCredentials peer;
  steady_clock::time_point since = steady_clock::now();
  bool is_refused = false;  ///< was told so; what it sends is read, and not looked at
};

json errorLine(const Error& error) {
  json out{{"error", std::string(muster::toString(error.code()))}, {"text", error.str()}};
  if (error.has(SignerProblem::Busy)) out["problem"] = "busy";
  return out;
}

class SignerServer {
 public:
  SignerServer(int listening, const SignerServerOptions& options)
      : listening_(listening),
        options_(options),
        clock_(options.clock ? *options.clock : system_clock_),
        log_(options.folder, options.log),
        statements_(options.statements),
        certificates_(options.certificates),
        rotations_(options.rotations) {}

  Result<void> run();

 private:
  struct Keys {
    LocalSigner signer;
    PublicHalves halves;
  };

  void accept();
  void refuse(io::Fd fd, uid_t who);
  std::size_t heard() const;  ///< of askers_, those that are not refused
  steady_clock::time_point endOf(const Asker& asker) const {
    return asker.since + (asker.is_refused ? kRefusedStay : options_.patience);
  }
  /// False: the connection has ended.
  bool serve(Asker& asker);
  Result<json> answer(const Asker& asker, const json& request);
  Result<json> sign(const Asker& asker, const json& request);
  Result<json> certify(const Asker& asker, const json& request);
  Result<json> changeKey(const Asker& asker, const std::string& what, const json& request);
  Result<const Keys*> keys();
  Result<json> halves();
  std::string stamp() const;
  Result<void> note(const Asker& asker, const std::string& about);
  milliseconds patience() const;

  int listening_;
  const SignerServerOptions& options_;
  SystemClock system_clock_;
  const Clock& clock_;
  SignatureLog log_;
  Allowance statements_, certificates_, rotations_;
  std::list<Asker> askers_;
  std::optional<Keys> keys_;
  std::string stamp_;  ///< of the files when keys_ were read
};

Result<void> SignerServer::run() {
  while (true) {
    std::vector<pollfd> wait{{options_.stop, POLLIN, 0}};
    // Who is one too many waits in the socket's queue.
    const bool has_room = heard() < kMaxSignerConnections;
    wait.push_back({has_room ? listening_ : -1, POLLIN, 0});
    for (const auto& asker : askers_) wait.push_back({asker.fd.get(), POLLIN | POLLRDHUP, 0});
    const int ready = ::poll(wait.data(), wait.size(), static_cast<int>(patience().count()));
    if (ready < 0 && errno != EINTR)
      return fail(ErrorCode::Internal, fmt::format("poll: {}", std::strerror(errno)));
    if (ready < 0) continue;
    if (wait[0].revents != 0) return {};
    if ((wait[1].revents & (POLLERR | POLLNVAL)) != 0)
      return fail(ErrorCode::Internal, "the descriptor is no listening socket");
    const auto now = steady_clock::now();
    std::size_t at = 2;
    for (auto asker = askers_.begin(); asker != askers_.end();) {
      const bool is_ready = wait[at++].revents != 0;
      const bool stays = is_ready ? serve(*asker) : now < endOf(*asker);
      asker = stays ? std::next(asker) : askers_.erase(asker);
    }
    if ((wait[1].revents & POLLIN) != 0) accept();
  }
}

milliseconds SignerServer::patience() const {
  auto first = steady_clock::time_point::max();
  for (const auto& asker : askers_) first = std::min(first, endOf(asker));
  if (askers_.empty()) return milliseconds(-1);
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(first - steady_clock::now()));
}

void SignerServer::accept() {
  io::Fd fd(::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  auto peer = io::peerCredentials(fd.get());
  if (!peer || (options_.asker && peer->uid != *options_.asker))
    return refuse(std::move(fd), peer ? peer->uid : 0);
  askers_.emplace_back(std::move(fd), std::move(*peer));
}

void SignerServer::refuse(io::Fd fd, uid_t who) {
  const auto text = fmt::format(
      "user {} may not ask the signer: only the service's user may, as "
      "which `muster` works also for root",
      who);
  logWarning("signer", "{}", text);
  (void)io::sendJsonLine(fd.get(), errorLine(Error(ErrorCode::Denied, text)), kSendLimit);
  (void)::shutdown(fd.get(), SHUT_WR);
  if (askers_.size() - heard() >= kMaxRefused)
    askers_.erase(std::ranges::find(askers_, true, &Asker::is_refused));
  askers_.emplace_back(std::move(fd), io::PeerCredentials{.uid = who}).is_refused = true;
}

std::size_t SignerServer::heard() const {
  return static_cast<std::size_t>(std::ranges::count(askers_, false, &Asker::is_refused));
}

/// False: nothing more comes.
bool readAway(int fd) {
  std::array<char, 64u << 10> piece;
  const auto got = ::read(fd, piece.data(), piece.size());
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

bool SignerServer::serve(Asker& asker) {
  if (asker.is_refused) return steady_clock::now() < endOf(asker) && readAway(asker.fd.get());
  const auto line = asker.lines.next(steady_clock::now());
  if (!line && line.error().code() == ErrorCode::Timeout)
    return steady_clock::now() - asker.since < options_.patience;
  if (!line && line.error().code() != ErrorCode::InvalidInput) return false;
  Result<json> done = json();
  if (line) {
    const auto request = parseJson(*line, kSignerJson);
    done = request ? answer(asker, *request) : Result<json>(fail(request.error()));
  } else {
    done = fail(line.error());
  }
  if (!done) logWarning("signer", "refused to user {}: {}", asker.peer.uid, done.error().str());
  const auto sent =
      io::sendJsonLine(asker.fd.get(), done ? *done : errorLine(done.error()), kSendLimit);
  if (!sent) logWarning("signer", "who asked was not answered: {}", sent.error().str());
  return false;  // one request a connection: nobody keeps a place
}

std::string SignerServer::stamp() const {
  std::string out;
  const auto& folder = options_.folder;
  for (const auto& file :
       {keyFileOf(folder, kCertificatesKey), folder / "keys" / "signing.previous.pub",
        folder / "ca" / "ca.key", folder / "ca" / "ca.crt"}) {
    struct stat status{};
    // Of the link, not of what it leads to; its mode counts too, and changes the second time.
    const bool is_there = ::lstat(file.c_str(), &status) == 0;
    out += is_there
               ? fmt::format("{}.{}.{}.{}.{} ", status.st_ino, status.st_mtim.tv_sec,
                             status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
               : "- ";
  }
  return out;
}

Result<const SignerServer::Keys*> SignerServer::keys() {
  if (keys_ && stamp() == stamp_) return &*keys_;
  keys_.reset();
  TRY(ca, loadAuthority(options_.folder));
  TRY(certificates, loadSigningKey(options_.folder, kCertificatesKey));
  stamp_ = stamp();
  PublicHalves halves{certificates.public_pem, ca.certificatePem()};
  logInfo("signer", "signs with key {} and CA {}", certificates.id(), ca.fingerprint());
  keys_.emplace(
      Keys{LocalSigner({std::move(certificates), std::move(ca)}, &clock_), std::move(halves)});
  return &*keys_;
}

Result<json> SignerServer::halves() {
  TRY(own, keys());
  return json{{"certificates", own->halves.certificates}, {"ca", own->halves.ca}};
}

Result<void> SignerServer::note(const Asker& asker, const std::string& about) {
  const auto words = fmt::format("uid={} pid={} {}", asker.peer.uid, asker.peer.pid, about);
  TRY_OK(log_.add(clock_.now(), words));
  logInfo("signer", "{}", words);
  return {};
}

std::unexpected<Error> busy(const char* what) {
  return fail(Error(ErrorCode::Unavailable,
                    fmt::format("more {} were asked for than are signed in this time", what))
                  .because(SignerProblem::Busy));
}

Result<json> SignerServer::sign(const Asker& asker, const json& request) {
  const auto statement = statementOf(textOf(request, "sign"));
  const auto text = request.find("text");
  if (!statement || request.size() != 2 || text == request.end() || !text->is_string())
    return fail(ErrorCode::InvalidInput,
                R"(a statement is {"sign": KIND, "text": TEXT}, of a kind that the signer knows)");
  if (!statements_.take()) return busy("statements");
  TRY(own, keys());
  TRY(done, own->signer.signedAs(*statement, text->get_ref<const std::string&>()));
  TRY_OK(note(asker, done.about));
  return json{{"signature", done.answer}};
}

Result<json> SignerServer::certify(const Asker& asker, const json& request) {
  const auto kind = certificateKindOf(textOf(request, "certify"));
  const auto hours = request.value("hours", json());
  const auto names = request.value("names", json());
  if (!kind || request.size() != 6 || !request.contains("name") || !request.contains("request") ||
      !request.contains("ca") || !names.is_array() || !hours.is_number_integer() ||
      !std::ranges::all_of(names, [](const json& name) { return name.is_string(); }))
    return fail(ErrorCode::InvalidInput,
                R"(a certificate is {"certify": KIND, "name": …, "names": […], "hours": N, )"
                R"("request": PEM, "ca": SHA-256}, of a kind that the signer knows)");
  const auto count = hours.get<std::int64_t>();
  CertificateOrder order{*kind,
                         textOf(request, "name"),
                         names.get<std::vector<std::string>>(),
                         std::chrono::hours(std::clamp<std::int64_t>(count, -1, kMaxHours)),
                         textOf(request, "request"),
                         textOf(request, "ca")};
  TRY_OK(checkOrder(order));
  if (!certificates_.take()) return busy("certificates");
  TRY(own, keys());
  TRY(done, own->signer.certified(order));
  TRY_OK(note(asker, done.about));
  return json{{"certificate", done.answer}};
}

KeyChange changeOf(std::string_view what) {
  return what == "rotate"   ? KeyChange::Rotate
         : what == "finish" ? KeyChange::Finish
                            : KeyChange::ReplaceLost;
}

/// The id of the key that signs now.
Result<std::string> changed(const std::filesystem::path& folder, KeyChange change) {
  if (change == KeyChange::Finish)
    TRY_OK(finishSigningRotation(folder, kCertificatesKey));
  else if (change == KeyChange::Rotate)
    TRY_OK(rotateSigningKey(folder, kCertificatesKey));
  else
    TRY_OK(replaceLostSigningKey(folder, kCertificatesKey));
  TRY(key, loadSigningKey(folder, kCertificatesKey));
  return key.id();
}

Result<json> SignerServer::changeKey(const Asker& asker, const std::string& what,
                                     const json& request) {
  if (textOf(request, what.c_str()) != kCertificatesKey.name)
    return fail(ErrorCode::InvalidInput, "the signer changes its key for certificates alone");
  const auto change = changeOf(what);
  // What cannot begin changes nothing: it is no line of the log, and takes nobody's place.
  TRY_OK(requireChangeable(options_.folder, kCertificatesKey, change));
  if (!rotations_.take()) return busy("rotations");
  // Written down before: a rotation that the log does not know of must not be.
  TRY_OK(note(asker, what + " certificates begins"));
  const auto done = changed(options_.folder, change);
  const auto end = done ? note(asker, fmt::format("{} certificates done key={}", what, *done))
                        : note(asker, fmt::format("{} certificates failed: {}", what,
                                                  muster::toString(done.error().code())));
  if (!end) logWarning("signer", "how it ended is not in the log: {}", end.error().str());
  if (!done) return fail(done.error());
  return halves();
}

Result<json> SignerServer::answer(const Asker& asker, const json& request) {
  if (request.is_object()) {
    if (request.contains("sign")) return sign(asker, request);
    if (request.contains("certify")) return certify(asker, request);
    if (request.size() == 1 && flagOf(request, "public")) return halves();
    for (const char* what : {"rotate", "finish", "replace_lost"})
      if (request.size() == 1 && request.contains(what)) return changeKey(asker, what, request);
  }
  return fail(ErrorCode::InvalidInput,
              R"(asked is one of {"sign": …}, {"certify": …}, {"public": true}, {"rotate": …}, )"
              R"({"finish": …}, {"replace_lost": …})");
}

}  // namespace

Result<void> serveSigner(int listening, const SignerServerOptions& options) {
  io::ignoreBrokenPipes();
  // Of two that share the socket one is too late: it must not wait for the next who asks.
  const int flags = ::fcntl(listening, F_GETFL);
  if (flags < 0 || ::fcntl(listening, F_SETFL, flags | O_NONBLOCK) != 0)
    return fail(ErrorCode::Internal, "the descriptor is no listening socket");
  return SignerServer(listening, options).run();
}

}  // namespace muster::signer
