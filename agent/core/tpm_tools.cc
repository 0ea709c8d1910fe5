// SPDX-License-Identifier: Apache-2.0
#include "agent/core/tpm.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"

#include <fmt/format.h>

namespace muster::agent {
namespace {

constexpr std::size_t kMaxBlobBytes = 64u << 10;
constexpr std::size_t kPcrBytes = 32;
constexpr std::chrono::seconds kToolLimit{60};  ///< a slow TPM makes a key in some seconds
constexpr const char* kEkCertificate =
    "0x01c00002";  ///< NV index of the RSA 2048 EK's certificate (TCG EK Credential Profile)
constexpr std::string_view kBlobHeader{"\xba\xdc\xc0\xde\x00\x00\x00\x01",
                                       8};  ///< tpm2-tools put it before a credential

std::string join(const std::vector<int>& numbers) {
  std::string out;
  for (const int number : numbers) out += (out.empty() ? "" : ",") + std::to_string(number);
  return out;
}

class TpmTools final : public Tpm {
 public:
  TpmTools(std::filesystem::path folder, std::string tcti)
      : folder_(std::move(folder)), tcti_(std::move(tcti)) {}

  Result<Keys> makeKeys() override {
    TRY_OK(io::makeDirs(folder_, 0700));
    TRY_OK(tool("tpm2_createek", {"-c", "ek.ctx", "-G", "rsa", "-u", "ek.pub"}));
    TRY_OK(tool("tpm2_createak", {"-C", "ek.ctx", "-c", "ak.ctx", "-G", "ecc", "-g", "sha256", "-s",
                                  "ecdsa", "-u", "ak.pub"}));
    Keys keys;
    TRY(ek, file("ek.pub"));
    TRY(ak, file("ak.pub"));
    keys.ek_public = std::move(ek);
    keys.ak_public = std::move(ak);
    if (tool("tpm2_nvread", {kEkCertificate, "-C", "o", "-o", "ek.crt"}))
      keys.ek_certificate = file("ek.crt").value_or(std::string());
    return keys;
  }

  Result<std::string> activate(const std::string& id_object,
                               const std::string& encrypted_secret) override {
    TRY_OK(io::writeFileAtomic(folder_ / "credential",
                               std::string(kBlobHeader) + id_object + encrypted_secret, 0600));
    TRY_OK(tool("tpm2_startauthsession", {"--policy-session", "-S", "session.ctx"},
                Flush::No));  // the endorsement hierarchy's own policy lets its key be used
    auto opened = tool("tpm2_policysecret", {"-S", "session.ctx", "-c", "e"}, Flush::No);
    if (opened)
      opened = tool("tpm2_activatecredential",
                    {"-c", "ak.ctx", "-C", "ek.ctx", "-i", "credential", "-o", "secret", "-P",
                     "session:session.ctx"},
                    Flush::No);
    (void)tool("tpm2_flushcontext", {"session.ctx"});
    if (!opened) return fail(ErrorCode::Denied, opened.error().str());
    return file("secret");
  }

  Result<Quote> quote(const std::vector<int>& pcrs, const std::string& qualifying_data) override {
    const auto selection = "sha256:" + join(pcrs);
    TRY_OK(tool("tpm2_quote", {"-c", "ak.ctx", "-l", selection, "-q", io::toHex(qualifying_data),
                               "-m", "quote.msg", "-s", "quote.sig", "-g", "sha256"}));
    TRY_OK(tool("tpm2_pcrread", {selection, "-o", "pcrs"}));
    Quote out;
    TRY(message, file("quote.msg"));
    TRY(signature, file("quote.sig"));
    TRY(values, file("pcrs"));
    if (values.size() != pcrs.size() * kPcrBytes)
      return fail(ErrorCode::Internal, "the TPM has no SHA-256 bank for these PCRs");
    out.quote = std::move(message);
    out.signature = std::move(signature);
    for (std::size_t i = 0; i < pcrs.size(); ++i)
      out.pcrs[pcrs[i]] = values.substr(i * kPcrBytes, kPcrBytes);
    return out;
  }

 private:
  enum class Flush { No, Yes };
  Result<std::string> file(const char* name) { return io::readFile(folder_ / name, kMaxBlobBytes); }

  Result<void> tool(const char* program, std::vector<std::string> args, Flush flush = Flush::Yes) {
    io::Command command{program, std::move(args), {{"TPM2TOOLS_TCTI", tcti_}}};
    command.working_dir = folder_;
    command.timeout = kToolLimit;
    const auto ran = io::runChecked(command);
    if (flush ==
        Flush::Yes) {  // a TPM has room for three keys; behind a resource manager this does nothing
      io::Command clear{"tpm2_flushcontext", {"-t"}, {{"TPM2TOOLS_TCTI", tcti_}}};
      (void)io::runBlocking(clear);
    }
    if (!ran) return std::unexpected(ran.error());
    return {};
  }

  std::filesystem::path folder_;
  std::string tcti_;
};

}  // namespace

std::unique_ptr<Tpm> makeTpmTools(std::filesystem::path work_folder, std::string tcti) {
  return std::make_unique<TpmTools>(std::move(work_folder), std::move(tcti));
}

}  // namespace muster::agent
