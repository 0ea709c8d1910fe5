// SPDX-License-Identifier: Apache-2.0
// A controller that is attacked: the real listeners, gateway and image store in a process of its
// own, so that a signal or gigabytes of memory are seen from outside. It listens on a loopback
// address of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/io/crypto.h"
#include "tests/run_async.h"

namespace muster::attack {

inline constexpr std::uint16_t kPlainPort = 8080, kTlsPort = 8443;
inline constexpr std::size_t kServedFileBytes = 256u << 20;  ///< of /file; a hole
inline constexpr int kNodes = 4;
/// gpu001 … gpu004
std::string macOf(int node);
std::string nodeOf(int node);

class AttackSite {
 public:
  /// Must be called while the process has one thread: it forks. Ends the process where no
  /// controller can be started.
  AttackSite();
  AttackSite(const AttackSite&) = delete;
  ~AttackSite();

  const std::string& address() const { return address_; }
  const io::CertificateAuthority& ca() const { return *ca_; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::string plainUrl(const std::string& target) const;
  std::string tlsUrl(const std::string& target) const;

  /// Arms the node anew, as muster does when it restarts it; the id of this arming, which is
  /// public.
  std::string arm(int node);
  /// How many findings are open in the controller's store.
  int findings();

  bool alive();
  std::size_t residentBytes() const;
  /// The most that it ever had.
  std::size_t peakBytes() const;
  int openDescriptors() const;

 private:
  std::string ask(const std::string& what);

  test::TempFolder folder_;
  std::string address_;
  std::optional<io::CertificateAuthority> ca_;
  pid_t pid_ = -1;
  int control_ = -1;
};

/// The suite's one site; made by main.
AttackSite& site();

}  // namespace muster::attack
