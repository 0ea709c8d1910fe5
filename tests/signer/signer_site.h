// SPDX-License-Identifier: Apache-2.0
// A signer's folder, its server on a real socket, and openssl, which says what its signatures are
// worth. The statements are written out here, as docs/certificates.md has them.
#pragma once

#include "base/io/files.h"
#include "base/io/process.h"
#include "base/io/trusted_keys.h"
#include "signer/key_files.h"
#include "signer/signer_client.h"
#include "signer/signer_server.h"
#include "tests/run_async.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

namespace muster::signer::testing {

/// Output of a shell's script in `folder`; its status must be `wanted`.
inline std::string shell(const std::filesystem::path& folder, const std::string& script,
                         int wanted = 0) {
  io::Command command{"bash", {"-c", script}};
  command.working_dir = folder;
  const auto ended = io::runBlocking(std::move(command));
  EXPECT_TRUE(ended && ended->code == wanted)
      << script << "\n"
      << (ended ? ended->out + ended->err : ended.error().str());
  return ended ? ended->out + ended->err : "";
}

inline io::Fd listenAt(const std::filesystem::path& path) {
  std::filesystem::remove(path);
  io::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 128), 0);
  return fd;
}

/// Serves while it lives.
class RunningSigner {
 public:
  RunningSigner(int listening, SignerServerOptions options)
      : stop_(::eventfd(0, EFD_CLOEXEC)), thread_([this, listening, options]() mutable {
          options.stop = stop_.get();
          const auto served = serveSigner(listening, options);
          EXPECT_TRUE(served) << served.error().str();
        }) {}
  ~RunningSigner() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_.get(), &one, sizeof one), 8);
  }

 private:
  io::Fd stop_;
  std::jthread thread_;
};

class SignerSite {
 public:
  SignerSite() {
    std::filesystem::create_directory(own());
    key = loadSigningKey(own(), kCertificatesKey)->id();
    std::ofstream(folder / "site.pub") << loadSigningKey(own(), kCertificatesKey)->public_pem;
    std::ofstream(folder / "root.crt") << loadAuthority(own())->certificatePem();
  }
  std::filesystem::path own() const { return folder / "own"; }
  std::filesystem::path socket() const { return folder / "socket"; }
  SignerClient client() const { return signerAt(socket()); }
  SignerServerOptions options() const {
    SignerServerOptions out;
    out.folder = own();
    out.clock = &clock;
    return out;
  }
  /// A request of openssl's, for a new key.
  std::string request(const std::string& subject = "/CN=whatever", const std::string& more = "") {
    shell(folder.path(),
          "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
          "-keyout node.key -out node.csr -subj '" +
              subject + "' " + more);
    return *io::readFile(folder / "node.csr");
  }
  /// Whether openssl finds that the site's key has signed these bytes.
  bool isSigned(const std::string& bytes, const std::string& signature,
                const std::string& by = "site.pub") {
    std::ofstream(folder / "message") << bytes;
    std::ofstream(folder / "signature") << signature;
    io::Command command{
        "bash",
        {"-c",
         "openssl base64 -d -A -in signature -out raw && openssl pkeyutl -verify -pubin "
         "-inkey " +
             by + " -rawin -in message -sigfile raw"}};
    command.working_dir = folder.path();
    const auto ended = io::runBlocking(std::move(command));
    return ended && ended->code == 0;
  }
  std::string log() const { return io::readFile(own() / SignatureLog::kFile).value_or(""); }

  /// Issued at the clock's moment, midnight.
  std::string certificate(const std::string& node = "gpu001") const {
    return R"({"basis":"b0","bound":{"image":"sha256:1"},"expires_at":")" +
           muster::toString(clock.now() + std::chrono::hours(24)) +
           R"(","format":"muster-certificate/1","inventory_digest":"d0","issued_at":")" +
           muster::toString(clock.now()) + R"(","key_id":")" + key + R"(","node":")" + node +
           R"(","proven_at":")" + muster::toString(clock.now()) + R"("})";
  }

  test::TempFolder folder;
  FakeClock clock;
  std::string key;
};

inline std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in " << text;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

}  // namespace muster::signer::testing
