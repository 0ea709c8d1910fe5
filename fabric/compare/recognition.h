// SPDX-License-Identifier: Apache-2.0
// Who is who in a found fabric whose devices do not carry the declared names: a switch with its
// factory's or MLNX-OS' name, an HCA that answers as "gpu001 HCA-5". Pure.
//
// Names are believed where they are declared. From there on the cables decide: a device is the
// declared one at whose place most of its cables are that lead to devices which are known already,
// and so on until nothing moves any more. Where no switch can be told by its neighbours yet, the
// HCAs of known hosts are taken in the order of their numbers; what differs only by the order of
// rails cannot be seen in the cables of a fabric without names. A host that shows fewer HCAs than
// it has is the exception to names that are believed: its kernel has numbered the others anew.
#pragma once

#include "fabric/topology/topology.h"

namespace muster::fabric {

struct Recognized {
  /// `found` with the declared names of what was recognized. A host that answers with a name that
  /// is not its own keeps it: that is a deviation, and its GUIDs are not believed (adr/0008).
  Topology found;
  std::map<std::string, std::string> names;  ///< declared name → the one it answers with
  std::string note;  ///< for people: how many, with an example; empty: all names are as declared
};

/// Time: rounds × cables; there are at most as many rounds as levels, a few more where cables are
/// wrong.
Recognized recognize(const Topology& declared, Topology found);

}  // namespace muster::fabric
