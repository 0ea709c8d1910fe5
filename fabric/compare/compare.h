// SPDX-License-Identifier: Apache-2.0
// Declared against found, and the fewest moves of cables that make them equal. Pure.
#pragma once

#include "fabric/topology/topology.h"
#include "inventory/model/fabric.h"

namespace muster::fabric {

enum class DeviationKind {
  MissingNode,
  ExtraNode,
  MissingLink,
  ExtraLink,
  Miswired,
  RailSwapped,  ///< an HCA hangs where another HCA of its own node belongs
  WrongWidthSpeed,
  WrongDescription,  ///< the right place, another name
  DuplicateGuid,
  WrongFirmware,  ///< of a switch, or none that it tells (switch_firmware.h)
};
std::string_view toString(DeviationKind kind);

struct Deviation {
  DeviationKind kind;
  Port at;
  std::string declared, found;
  std::string repair;  ///< what to do about it, together with what hangs together with it: several
                       ///< deviations may share one text
};

/// What a hand does to one cable. Within a Repair all ends are taken out before any is put in.
struct Move {
  enum class Kind { Plug, Pull, MoveEnd };
  Kind kind;
  Port other;     ///< the end that stays; of Plug and Pull one end
  Port from, to;  ///< Plug has only `to`, Pull only `from`
};
struct Repair {
  std::string text;
  std::vector<Move> moves;  ///< empty where no cable is to blame (a switch without power)
};

/// Whether the declaration excuses this port, or its whole device.
bool excuses(const std::vector<inventory::FabricExclusion>& excused, const Port& port);

struct Comparison {
  std::vector<Deviation> deviations;  ///< ordered by place
  std::vector<Repair> repairs;        ///< each deviation's, each once
  std::vector<Deviation> excluded;    ///< those that the declaration excuses
};

/// One mistake gives one deviation for each cable or device that it concerns. Time grows linearly
/// with the cables.
Comparison compare(const Topology& declared, const Topology& found,
                   const std::vector<inventory::FabricExclusion>& excused = {});

/// The links after a repair; new ones have `width_speed`.
void apply(const Repair& repair, Topology& topology, const std::string& width_speed);

}  // namespace muster::fabric
