// SPDX-License-Identifier: Apache-2.0
// Seam: libvirt. Blocking calls on the lab's private daemon; a lost connection is opened again.
#pragma once

#include "lab/domain_xml.h"

#include <memory>

namespace muster::lab {

class Virt {
 public:
  /// Errors: Unavailable
  static Result<std::unique_ptr<Virt>> connect(std::string uri);
  ~Virt();

  Result<bool> running(const std::string& domain);
  /// Defines without starting: the domain is then known and off.
  Result<void> define(const std::string& xml);
  /// Defines and starts. When the network or a virtual CD comes first it does so for this start
  /// only: the order is changed behind the running firmware's back and takes effect when the guest
  /// resets.
  Result<void> start(const DomainSpec& spec, const vbmc::StartOptions& options);
  Result<void> destroy(const std::string& domain);
  Result<void> pressButton(const std::string& domain);
  /// Takes the image out of the virtual CD of a running domain. Nothing: it has none.
  Result<void> emptyDrive(const DomainSpec& spec);

 private:
  struct State;
  explicit Virt(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace muster::lab
