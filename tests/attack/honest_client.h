// SPDX-License-Identifier: Apache-2.0
// Honest requests beside the attacks: a node that boots and an agent that polls. What they had to
// wait is the suite's figure.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/io/http.h"
#include "tests/attack/attack_site.h"

namespace muster::attack {

/// The bar: 99 of 100 honest requests are answered within this.
inline constexpr std::chrono::milliseconds kHonestP99{500};

class HonestClient {
 public:
  /// Enrolls as gpu001 and starts to ask.
  explicit HonestClient(AttackSite& site);
  HonestClient(const HonestClient&) = delete;
  ~HonestClient() { stop(); }
  void stop();
  /// Does not ask while an attack runs that is known to succeed: its figure would say nothing of
  /// the others.
  void pause(bool paused) { paused_ = paused; }

  struct Figures {
    std::size_t requests = 0, failures = 0;
    std::chrono::milliseconds p50{0}, p99{0}, longest{0};
    std::string last_failure;
  };
  Figures figures() const;
  /// The identity of gpu001.
  const io::TlsIdentity& identity() const { return identity_; }

 private:
  void work(std::string plain_url, std::string poll_url, io::TlsTrust trust);

  io::TlsIdentity identity_;
  std::atomic<bool> stopping_ = false, paused_ = false;
  mutable std::mutex mutex_;
  std::vector<std::chrono::milliseconds> took_;
  std::size_t failures_ = 0;
  std::string last_failure_;
  std::thread thread_;
};

HonestClient& honest();

}  // namespace muster::attack
