// SPDX-License-Identifier: Apache-2.0
// MachineRegistry: every machine that was seen, kept in the store (one value, `discover.machines`).
// Sightings of one machine by several senses come together here; two machines that claim one serial
// stay two, since that is a finding.
#pragma once

#include "discovery/machine.h"
#include "lifecycle/store/store.h"

#include <functional>

namespace muster::discovery {

inline constexpr std::size_t kMaxMachines = 20'000;

class MachineRegistry {
 public:
  /// Errors: Corrupt, the store's
  static Result<MachineRegistry> read(lifecycle::Store& store);
  static Result<MachineRegistry> parse(const std::string& text);
  std::string str() const;

  const std::vector<Machine>& machines() const { return machines_; }
  std::vector<Machine>& machines() { return machines_; }
  /// The machine with this id, BMC address or MAC. Errors: NotFound, Conflict (several)
  Result<std::size_t> find(const std::string& id) const;

  /// Puts a sighting to the machine that it is of, or begins a new one. Errors: Conflict when the
  /// registry is full
  Result<void> note(Machine sighting, WallTime now);
  bool forget(const std::string& id);

 private:
  std::size_t ownerOf(const Machine& sighting) const;
  void absorbLooseNics(std::size_t into);

  std::vector<Machine> machines_;
};

/// Reads, changes and writes the registry; done again when another process has written meanwhile.
/// `change` may run several times.
Result<MachineRegistry> updateRegistry(lifecycle::Store& store,
                                       const std::function<Result<void>(MachineRegistry&)>& change);

}  // namespace muster::discovery
