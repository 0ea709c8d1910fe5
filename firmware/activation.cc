#include "firmware/activation.h"

#include "lifecycle/facet.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace muster::firmware {
namespace {

constexpr std::array kRows = {
    ActivationRow{"idrac*", Activation::None, "iDRAC restarts by itself after its update (fwupd waits 120 s)"},
    ActivationRow{"ilo*", Activation::None, "iLO restarts by itself after its update"},
    ActivationRow{"hgx_*", Activation::PowerCycle, "HGX baseboard components, its BMC included: chassis power cycle (DGX H100 order, step 6)"},
    ActivationRow{"*erot*", Activation::PowerCycle, "roots of trust; the AC removal that some need is not driven yet"},
    ActivationRow{"hostbmc*", Activation::BmcReset, "DGX H100 order, step 2: BMC reset after its own update"},
    ActivationRow{"bmc*", Activation::BmcReset, "Supermicro and the virtual BMC call theirs BMC"},
    ActivationRow{"*psu*", Activation::None, "power supplies are updated live"},
    ActivationRow{"powersupply*", Activation::None, "power supplies are updated live"},
    ActivationRow{"*", Activation::PowerCycle, "BIOS, CPLD, NIC and whatever else belongs to the host"},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

std::string_view toString(Activation activation) {
  switch (activation) {
    case Activation::None: return "none";
    case Activation::BmcReset: return "bmc-reset";
    case Activation::PowerCycle: return "power-cycle";
  }
  return "none";
}

std::span<const ActivationRow> activationRows() { return kRows; }

Activation activationOf(std::string_view component) {
  const std::string name = lower(component);
  for (const ActivationRow& row : kRows) {
    if (lifecycle::matches(row.component, name)) return row.activation;
  }
  return Activation::PowerCycle;
}

}  // namespace muster::firmware
