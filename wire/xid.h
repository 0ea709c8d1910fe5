// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's XIDs ask for. One table for whoever reads them: gates, which look at the kernel's
// log of a boot, and `muster monitor`, which acts. Source: NVIDIA's XID catalogue (its generated
// form in gpud); the tables of OCI and AWS.
#pragma once

#include <array>
#include <string_view>

namespace muster::wire {

enum class XidNeeds {
  Nothing,  ///< for information
  NewJob,   ///< the application's fault
  Reset,    ///< of the GPU
  Reboot,
  Seating,  ///< it has fallen off the bus
  Power,    ///< its auxiliary power leads
  Links     ///< NVLink or NVSwitch
};

struct XidRow {
  std::string_view id;  ///< as symptoms have it: "xid.79"
  XidNeeds needs;
  bool vendor_if_again = false;  ///< after a reset it is the vendor's
};

inline constexpr std::array kXids{
    XidRow{"xid.79", XidNeeds::Seating, true}, XidRow{"xid.151", XidNeeds::Reboot},
    XidRow{"xid.168", XidNeeds::Reboot},       XidRow{"xid.54", XidNeeds::Power},
    XidRow{"xid.46", XidNeeds::Reset},         XidRow{"xid.48", XidNeeds::Reset, true},
    XidRow{"xid.62", XidNeeds::Reset},         XidRow{"xid.64", XidNeeds::Reset, true},
    XidRow{"xid.95", XidNeeds::Reset, true},   XidRow{"xid.109", XidNeeds::Reset},
    XidRow{"xid.110", XidNeeds::Reset},        XidRow{"xid.119", XidNeeds::Reset},
    XidRow{"xid.120", XidNeeds::Reset},        XidRow{"xid.136", XidNeeds::Reset},
    XidRow{"xid.140", XidNeeds::Reset, true},  XidRow{"xid.143", XidNeeds::Reset},
    XidRow{"xid.155", XidNeeds::Reset},        XidRow{"xid.156", XidNeeds::Reset},
    XidRow{"xid.158", XidNeeds::Reset},        XidRow{"xid.74", XidNeeds::Links},
    XidRow{"xid.144", XidNeeds::Links},        XidRow{"xid.145", XidNeeds::Links},
    XidRow{"xid.146", XidNeeds::Links},        XidRow{"xid.147", XidNeeds::Links},
    XidRow{"xid.148", XidNeeds::Links},        XidRow{"xid.149", XidNeeds::Links},
    XidRow{"xid.150", XidNeeds::Links},        XidRow{"xid.8", XidNeeds::NewJob},
    XidRow{"xid.11", XidNeeds::NewJob},        XidRow{"xid.13", XidNeeds::NewJob},
    XidRow{"xid.31", XidNeeds::NewJob},        XidRow{"xid.32", XidNeeds::NewJob},
    XidRow{"xid.39", XidNeeds::NewJob},        XidRow{"xid.40", XidNeeds::NewJob},
    XidRow{"xid.41", XidNeeds::NewJob},        XidRow{"xid.68", XidNeeds::NewJob},
    XidRow{"xid.69", XidNeeds::NewJob},        XidRow{"xid.94", XidNeeds::NewJob},
    XidRow{"xid.126", XidNeeds::NewJob},       XidRow{"xid.127", XidNeeds::NewJob},
    XidRow{"xid.128", XidNeeds::NewJob},       XidRow{"xid.129", XidNeeds::NewJob},
    XidRow{"xid.130", XidNeeds::NewJob},       XidRow{"xid.131", XidNeeds::NewJob},
    XidRow{"xid.132", XidNeeds::NewJob},       XidRow{"xid.133", XidNeeds::NewJob},
    XidRow{"xid.134", XidNeeds::NewJob},       XidRow{"xid.135", XidNeeds::NewJob},
    XidRow{"xid.43", XidNeeds::Nothing},       XidRow{"xid.44", XidNeeds::Nothing},
    XidRow{"xid.63", XidNeeds::Nothing},       XidRow{"xid.92", XidNeeds::Nothing},
    XidRow{"xid.93", XidNeeds::Nothing},       XidRow{"xid.106", XidNeeds::Nothing},
    XidRow{"xid.107", XidNeeds::Nothing},      XidRow{"xid.121", XidNeeds::Nothing},
    XidRow{"xid.137", XidNeeds::Nothing},      XidRow{"xid.141", XidNeeds::Nothing},
    XidRow{"xid.154", XidNeeds::Nothing},  // 154: its text names what is needed
};

/// Nullptr: nobody knows this one.
constexpr const XidRow* findXid(std::string_view id) {
  for (const auto& row : kXids)
    if (row.id == id) return &row;
  return nullptr;
}

}  // namespace muster::wire
