// SPDX-License-Identifier: Apache-2.0
// A connection on which a test says what it likes, byte by byte, with a bound on every wait.
#pragma once

#include <openssl/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster::attack {

/// Attackers have an address of their own, so that what bounds them does not bound the honest
/// client.
inline constexpr const char* kAttackersAddress = "127.0.7.1";

using namespace std::chrono_literals;

struct TlsOffer {
  std::string certificate_pem, key_pem;  ///< of the client; empty: none
  int min_version = 0, max_version = 0;  ///< TLS1_2_VERSION …; 0: the library's
};

class RawConnection {
 public:
  /// `from`: the client's own loopback address. Not `up` where nobody took it.
  RawConnection(const std::string& address, std::uint16_t port,
                const std::string& from = kAttackersAddress);
  RawConnection(RawConnection&& other) noexcept;
  RawConnection& operator=(RawConnection&&) = delete;
  ~RawConnection();

  bool up() const { return fd_ >= 0; }
  /// Whether a handshake came to its end. In TLS 1.3 a refused client certificate shows only at the
  /// first read.
  bool startTls(const TlsOffer& offer = {});

  /// How many of the bytes were taken before the other side closed or took none for so long.
  std::size_t say(std::string_view bytes, std::chrono::milliseconds limit = 5s);
  struct Heard {
    std::string bytes;
    bool closed = false;  ///< by the other side, or by an error
    int status = 0;       ///< of the first line, when it is one of HTTP
  };
  /// Until the other side closes, the head of an answer is whole (`head_only`), or the limit.
  Heard hear(std::chrono::milliseconds limit = 5s, bool head_only = true);
  void endSending();

 private:
  struct Tls;
  int fd_ = -1;
  std::unique_ptr<Tls> tls_;
};

/// One request on a connection of its own.
RawConnection::Heard askRaw(const std::string& address, std::uint16_t port, std::string_view bytes,
                            std::chrono::milliseconds limit = 5s);
/// The same over TLS. `closed` without a status: TLS refused it.
RawConnection::Heard askTls(const std::string& address, std::string_view bytes,
                            const TlsOffer& offer = {});
/// "POST target" with this body.
std::string post(std::string_view target, std::string_view body);

}  // namespace muster::attack
