// SPDX-License-Identifier: Apache-2.0
#include "signer/authority.h"

#include "base/io/files.h"
#include "base/io/trusted_keys.h"
#include "base/log.h"
#include "signer/local_signer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster::signer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIdentityBytes = 64u << 10;
/// An identity of before is taken again only while it is good for so long.
constexpr std::chrono::hours kLeastLeft{24};
constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";

fs::path fileOf(const fs::path& kept, const std::string& root_pem, std::vector<std::string> names) {
  std::ranges::sort(names);
  return kept /
         fmt::format(
             "server-{}.pem",
             io::sha256Hex(root_pem + fmt::format("{}", fmt::join(names, "\n"))).substr(0, 16));
}

/// Key first, certificate and root behind it: one file, so that both are of one moment.
Result<io::TlsIdentity> readIdentity(const fs::path& file) {
  TRY(text, io::readFile(file, kMaxIdentityBytes));
  const auto at = text.find(kBegin);
  if (at == std::string::npos) return fail(ErrorCode::Corrupt, file.string() + " is damaged");
  io::TlsIdentity out{Secret(text.substr(0, at)), text.substr(at)};
  TRY(info, io::describeCertificate(out.certificate_pem));
  if (info.not_after < std::chrono::system_clock::now() + kLeastLeft)
    return fail(ErrorCode::NotFound, file.string() + " has expired");
  return out;
}

Result<void> keep(const fs::path& file, const io::TlsIdentity& identity) {
  TRY_OK(io::makeDirs(file.parent_path(), 0700));
  return io::writeFileAtomic(file, identity.key_pem.reveal() + identity.certificate_pem, 0600);
}

}  // namespace

Authority::Authority(const io::CertificateAuthority& ca)
    : root_pem_(ca.certificatePem()),
      fingerprint_(ca.fingerprint()),
      signer_(std::make_shared<const LocalSigner>(LocalKeys{std::nullopt, ca})) {}

Result<Authority> Authority::signedBy(std::string root_pem,
                                      std::shared_ptr<const SiteSigner> signer, fs::path kept) {
  TRY(root, io::describeCertificate(root_pem));
  Authority out;
  out.root_pem_ = std::move(root_pem);
  out.fingerprint_ = root.sha256_fingerprint;
  out.signer_ = std::move(signer);
  out.kept_ = std::move(kept);
  return out;
}

Result<io::TlsIdentity> Authority::issueServer(const std::vector<std::string>& names,
                                               std::chrono::hours lifetime) const {
  TRY(made, io::makeKeyAndRequest(kControllerName));
  const auto signed_one =
      signer_->certify({CertificateKind::Controller, std::string(kControllerName), names, lifetime,
                        made.csr_pem, fingerprint_});
  const auto file = fileOf(kept_, root_pem_, names);
  if (!signed_one) {
    if (kept_.empty() || !signed_one.error().has(SignerProblem::Away))
      return fail(signed_one.error());
    auto before = readIdentity(file);
    if (!before) return fail(signed_one.error());
    logWarning("signer", "{}; this server goes on with its certificate of before",
               signed_one.error().str());
    return before;
  }
  io::TlsIdentity out{made.key_pem, *signed_one};
  if (!kept_.empty()) {
    if (const auto written = keep(file, out); !written)
      logWarning("signer", "{}: without it this server does not start while the signer is away",
                 written.error().str());
  }
  return out;
}

Result<std::string> Authority::signBmc(std::string csr_pem, std::string name,
                                       std::vector<std::string> names,
                                       std::chrono::hours lifetime) const {
  // Firmware may write something around it, and only a request alone is signed.
  if (const auto block = io::firstPemBlock(csr_pem); !block.empty())
    csr_pem = std::string(block) + "\n";
  return signer_->certify({CertificateKind::Bmc, std::move(name), std::move(names), lifetime,
                           std::move(csr_pem), fingerprint_});
}

Result<std::string> Authority::signAgent(std::string csr_pem, std::string node,
                                         std::chrono::hours lifetime) const {
  return signer_->certify(
      {CertificateKind::Agent, std::move(node), {}, lifetime, std::move(csr_pem), fingerprint_});
}

}  // namespace muster::signer
