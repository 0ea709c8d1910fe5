// SPDX-License-Identifier: Apache-2.0
#include "signer/signer_client.h"

#include "base/io/files.h"
#include "base/io/json_lines.h"
#include "base/io/peer_credentials.h"
#include "base/io/unix_client.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>

namespace muster::signer {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxAnswerBytes = 256u << 10;
constexpr JsonLimits kAnswerJson{"the answer of the signer", kMaxAnswerBytes,    4, 64,
                                 DuplicateKeys::Refused,     BrokenUtf8::Refused};

std::unexpected<Error> away(Error error, const SignerClientOptions& options) {
  return fail(Error(ErrorCode::Unavailable,
                    fmt::format("the signer, which holds the site's keys, does not answer at {} "
                                "({}): what has to be signed waits. As root: systemctl start "
                                "muster-signer.socket; journalctl -u muster-signer",
                                options.socket.string(), error.text()))
                  .because(SignerProblem::Away));
}

}  // namespace

Result<json> SignerClient::ask(const json& request) const {
  const auto now = std::chrono::steady_clock::now();
  const auto until = now + options_.patience;
  if (now < silent_until_->load())
    return away(Error(ErrorCode::Timeout, "no answer a moment ago"), options_);
  auto line = io::dialUnixSocket(options_.socket);
  if (!line) return away(line.error(), options_);
  TRY(peer, io::peerCredentials(line->get()));
  if (std::ranges::find(options_.owners, peer.uid) == options_.owners.end())
    return fail(ErrorCode::Denied,
                fmt::format("{} belongs to a program of the user with uid {}, and is not believed",
                            options_.socket.string(), peer.uid));
  // Who is refused is told at once, and the request meets a closed door: the answer is read.
  (void)io::sendJsonLine(line->get(), request, options_.patience);
  io::LineReader lines(line->get(), kMaxAnswerBytes);
  const auto said = lines.next(until);
  if (!said && said.error().code() == ErrorCode::Timeout)
    silent_until_->store(std::chrono::steady_clock::now() + options_.silence);
  if (!said) return away(said.error(), options_);
  const auto answer = parseJson(*said, kAnswerJson);
  if (!answer || !answer->is_object())
    return fail(ErrorCode::Corrupt, "the signer's answer cannot be read");
  if (const auto code = textOf(*answer, "error"); !code.empty()) {
    Error error(io::errorCodeOf(code), textOf(*answer, "text"));
    if (textOf(*answer, "problem") == "busy") error = std::move(error).because(SignerProblem::Busy);
    return fail(std::move(error).within("the signer"));
  }
  return *answer;
}

Result<std::string> SignerClient::sign(Statement statement, std::string_view text) const {
  // JSON would carry another text, and that would be signed.
  if (validUtf8(text) != text) return fail(ErrorCode::Denied, "this is not signed: it is no UTF-8");
  TRY(answer, ask({{"sign", toString(statement)}, {"text", text}}));
  return textOf(answer, "signature");
}

Result<std::string> SignerClient::certify(const CertificateOrder& order) const {
  TRY(answer, ask({{"certify", toString(order.kind)},
                   {"name", order.name},
                   {"names", order.names},
                   {"hours", order.lifetime.count()},
                   {"request", order.csr_pem},
                   {"ca", order.ca_fingerprint}}));
  return textOf(answer, "certificate");
}

Result<PublicHalves> SignerClient::askHalves(const json& request) const {
  TRY(answer, ask(request));
  return PublicHalves{textOf(answer, "certificates"), textOf(answer, "ca")};
}
Result<PublicHalves> SignerClient::publicHalves() const { return askHalves({{"public", true}}); }
Result<PublicHalves> SignerClient::rotate() const {
  return askHalves({{"rotate", kCertificatesKey.name}});
}
Result<PublicHalves> SignerClient::finish() const {
  return askHalves({{"finish", kCertificatesKey.name}});
}
Result<PublicHalves> SignerClient::replaceLost() const {
  return askHalves({{"replace_lost", kCertificatesKey.name}});
}

SignerClient signerAt(std::filesystem::path socket) {
  return SignerClient({std::move(socket), {0, ::geteuid()}});
}

}  // namespace muster::signer
