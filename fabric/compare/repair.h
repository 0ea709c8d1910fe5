// SPDX-License-Identifier: Apache-2.0
// From wrong cables to the fewest moves.
//
// A port has at most one declared and one found cable. So the cables that are wrong, together with
// those that are wanted, form chains and rings of ports in which both kinds alternate. In a chain
// or ring with n wrong cables each must have one end moved, and one each is enough: each can go
// either to the wanted cable before it or to the one behind it. Which way is chosen by where the
// hand must go: the same device is better than the same host, that better than another.
#pragma once

#include "fabric/compare/compare.h"
#include "fabric/topology/wiring.h"

namespace muster::fabric {

/// Ports one after the other; between them found and declared cables alternate.
struct Chain {
  std::vector<Wiring::Slot> ports;
  bool declared_first = false;  ///< the cable between ports[0] and ports[1] is a wanted one
  bool ring = false;            ///< the last port is the first

  std::size_t cables() const { return ports.size() - 1; }
  bool isDeclared(std::size_t cable) const { return (cable % 2 == 0) == declared_first; }
};

/// What becomes of each cable of a chain, in the order in which it is done.
struct Step {
  Move::Kind kind;
  Wiring::Slot other, from, to;  ///< as in Move
};
/// Steps in an order in which each port is free when it is its turn; a ring's first cable hangs
/// loose until the end.
std::vector<Step> planMoves(const Wiring& wiring, const Chain& chain);
std::string textOf(const Wiring& wiring, const Chain& chain, const std::vector<Step>& steps);
/// Whether that text first asks for the power of a host that is not seen, and not for a cable.
bool beginsWithPower(const Wiring& wiring, const Chain& chain, const std::vector<Step>& steps);
Move moveOf(const Wiring& wiring, const Step& step);

}  // namespace muster::fabric
