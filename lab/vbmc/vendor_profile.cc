// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/vendor_profile.h"

#include "base/result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace muster::lab::vbmc {
namespace {

constexpr std::array<ComponentRow, 2> kPlain = {
    {{"BMC", "2.0.0", Becomes::BmcReset}, {"BIOS", "1.4.0"}}};
constexpr std::array<ComponentRow, 5> kDell = {
    {{"iDRAC.Embedded.1-1", "6.10.30.00", Becomes::AtOnce},
     {"BIOS.Setup.1-1", "1.4.0"},
     {"CPLD.Embedded.1", "1.0.2", Becomes::AcCycle},
     {"NIC.Slot.5", "28.39.1002"},
     {"PSU.Slot.1", "00.1D.7D", Becomes::AtOnce}}};
constexpr std::array<ComponentRow, 3> kHpe = {
    {{"iLO 5", "2.72", Becomes::AtOnce},
     {"System ROM", "1.4.0"},
     {"System Programmable Logic Device", "0x12", Becomes::AcCycle}}};
constexpr std::array<ComponentRow, 3> kSupermicro = {
    {{"BMC", "01.01.06", Becomes::BmcReset},
     {"BIOS", "1.4.0"},
     {"CPLD_Motherboard", "F2.10", Becomes::AcCycle}}};
constexpr std::array<ComponentRow, 8> kDgx = {
    {{"HostBMC_0", "23.09.20", Becomes::BmcReset},
     {"HostBIOS_0", "1.0.5"},
     {"MB_CPLD_0", "0.2.1.6", Becomes::AcCycle},
     {"PSU_0", "1.3", Becomes::AtOnce},
     {"HGX_FW_BMC_0", "HGX-22.10-1-rc44"},
     {"HGX_FW_FPGA_0", "2.30"},
     {"HGX_FW_GPU_SXM_1", "96.00.5E.00.01"},
     {"HGX_FW_ERoT_FPGA_0", "00.02.0134.0000", Becomes::AcCycle, true}}};
// As a compute tray's BMC lists them (capture): the host's BMC runs a new image after its reset,
// the HGX tray after a power cycle, CPLDs and roots of trust after an AC cycle; roots of trust fill
// their second slot in the background.
constexpr std::array<ComponentRow, 24> kGb200 = {
    {{"FW_BMC_0", "GB200Nvl-24.10-1", Becomes::BmcReset},
     {"FW_CPLD_0", "0x00 0x0b 0x03 0x03", Becomes::AcCycle},
     {"FW_CPLD_1", "0x00 0x0b 0x03 0x03", Becomes::AcCycle},
     {"FW_ERoT_BMC_0", "01.03.0250.0000_n04", Becomes::AcCycle, true},
     {"HGX_FW_BMC_0", "GB200Nvl-24.10-1"},
     {"HGX_FW_CPLD_0", "0.1B", Becomes::AcCycle},
     {"HGX_FW_CPU_0", "02.03.10"},
     {"HGX_FW_CPU_1", "02.03.10"},
     {"HGX_FW_ERoT_BMC_0", "01.03.0250.0000_n04", Becomes::AcCycle, true},
     {"HGX_FW_ERoT_CPU_0", "01.03.0250.0000_n04", Becomes::AcCycle, true},
     {"HGX_FW_ERoT_CPU_1", "01.03.0250.0000_n04", Becomes::AcCycle, true},
     {"HGX_FW_ERoT_FPGA_0", "01.03.0250.0000_n04", Becomes::AcCycle, true},
     {"HGX_FW_ERoT_FPGA_1", "01.03.0250.0000_n04", Becomes::AcCycle, true},
     {"HGX_FW_FPGA_0", "1.1A"},
     {"HGX_FW_FPGA_1", "1.1A"},
     {"HGX_FW_GPU_0", "97.00.5E.00.01"},
     {"HGX_FW_GPU_1", "97.00.5E.00.01"},
     {"HGX_FW_GPU_2", "97.00.5E.00.01"},
     {"HGX_FW_GPU_3", "97.00.5E.00.01"},
     {"HGX_PCIeSwitchConfig_0", "01300523"},
     {"CX7_0", "28.41.1000"},
     {"NIC_0", "32.41.1000"},
     {"NIC_1", "32.41.1000"},
     {"UEFI", "buildbrain-gcid-10000000"}}};

constexpr std::array<std::string_view, 6> kUsualResets = {
    "On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle", "Nmi"};
constexpr std::array<std::string_view, 7> kAllResets = {
    "On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle", "Nmi", "FullPowerCycle"};
constexpr std::array<std::string_view, 4> kDgxResets = {"On", "ForceOff", "GracefulShutdown",
                                                        "ForceRestart"};

constexpr std::array kRows = {
    VendorProfile{"muster", "muster", "muster", "Virtual Node", "2.0.0", "BMC", "BIOS", kPlain,
                  kAllResets},
    VendorProfile{"idrac", "Dell", "Dell Inc.", "PowerEdge XE9680", "6.10.30.00",
                  "iDRAC.Embedded.1-1", "BIOS.Setup.1-1", kDell, kUsualResets, true, false, true,
                  CertificateMethod::Service, true},
    VendorProfile{"idrac-before-multipart", "Dell", "Dell Inc.", "PowerEdge C4140", "3.36.36.36",
                  "iDRAC.Embedded.1-1", "BIOS.Setup.1-1", kDell, kUsualResets, true, false, false,
                  CertificateMethod::Service, true, Takes::Push},
    VendorProfile{"ilo", "HPE", "HPE", "ProLiant XL675d Gen10 Plus", "2.72", "iLO 5", "System ROM",
                  kHpe, kUsualResets, true, false, true, CertificateMethod::HpeHttpsCert},
    VendorProfile{"supermicro", "Supermicro", "Supermicro", "SYS-821GE-TNHR", "01.01.06", "BMC",
                  "BIOS", kSupermicro, kUsualResets, false, false, false, CertificateMethod::Rekey},
    VendorProfile{"dgx-h100", "AMI", "NVIDIA", "DGXH100", "23.09.20", "HostBMC_0", "HostBIOS_0",
                  kDgx, kDgxResets, true, true, false},
    VendorProfile{"gb200", "NVIDIA", "NVIDIA", "GB200 NVL", "GB200Nvl-24.10-1", "FW_BMC_0", "UEFI",
                  kGb200, kUsualResets},
    VendorProfile{"openbmc", "OpenBMC", "OpenBMC Project", "Virtual Node", "2.18.0", "BMC", "BIOS",
                  kPlain, kAllResets},
    VendorProfile{"simple-update", "muster", "muster", "Virtual Node that fetches", "2.0.0", "BMC",
                  "BIOS", kPlain, kAllResets, true, false, true, CertificateMethod::Service, false,
                  Takes::Fetch},
};

}  // namespace

const ComponentRow* VendorProfile::find(std::string_view component) const {
  const auto found = std::find_if(components.begin(), components.end(),
                                  [&](const ComponentRow& row) { return row.name == component; });
  return found == components.end() ? nullptr : &*found;
}

std::span<const VendorProfile> vendorProfiles() { return kRows; }

Result<const VendorProfile*> findVendorProfile(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& row : kRows) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  return fail(ErrorCode::NotFound,
              fmt::format("there is no virtual BMC of the kind \"{}\"; there are {}", name,
                          fmt::join(names, ", ")));
}

}  // namespace muster::lab::vbmc
