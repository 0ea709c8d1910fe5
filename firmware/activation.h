// What makes uploaded firmware run: data by component name. A new component is a row.
#pragma once

#include <span>
#include <string_view>

namespace muster::firmware {

enum class Activation { None, BmcReset, PowerCycle };
std::string_view toString(Activation activation);

struct ActivationRow {
  std::string_view component;  ///< glob, case does not matter; the first that fits counts
  Activation activation;
  std::string_view source;
};

std::span<const ActivationRow> activationRows();
Activation activationOf(std::string_view component);

}  // namespace muster::firmware
