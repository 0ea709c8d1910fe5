// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/parts.h"

#include "agent/tasks/sysfs.h"
#include "base/io/files.h"

#include <fmt/format.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSmbiosBytes = 1u << 20;
constexpr std::uint8_t kMemoryDevice = 17, kEndOfTable = 127;
constexpr std::size_t kHeaderBytes = 4;
constexpr std::uint64_t kSectorBytes = 512;

std::uint8_t byteAt(std::string_view data, std::size_t at) {
  return at < data.size() ? static_cast<std::uint8_t>(data[at]) : 0;
}
std::uint64_t numberAt(std::string_view data, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | byteAt(data, at + static_cast<std::size_t>(i));
  return value;
}

std::string clean(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, wire::kMaxNameBytes))
    if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) out += c;
  out.erase(0, out.find_first_not_of(' '));
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

/// The n-th string behind a structure, from 1.
std::string stringAt(std::string_view strings, std::uint8_t number) {
  for (std::uint8_t i = 1; i <= number && !strings.empty(); ++i) {
    const auto end = strings.find('\0');
    if (i == number) return clean(strings.substr(0, end));
    if (end == std::string_view::npos) break;
    strings.remove_prefix(end + 1);
  }
  return {};
}

/// Bytes; 0: the slot is empty, or nobody knows.
std::uint64_t dimmBytes(std::string_view formatted) {
  const auto size = numberAt(formatted, 0x0c, 2);
  if (size == 0 || size == 0xffff) return 0;
  if (size == 0x7fff) return numberAt(formatted, 0x1c, 4) << 20;
  return (size & 0x8000) != 0 ? (size & 0x7fff) << 10 : size << 20;
}

std::string line(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  const auto text = io::readFile(path, kMaxSysfsBytes);
  return text ? clean(text->substr(0, text->find('\n'))) : std::string();
}

/// Not empty, not all zeros or all ones: what a device writes where nobody gave it one.
bool isIdentity(std::string_view text) {
  return text.find_first_not_of("0fFxX:-") != std::string_view::npos;
}

std::string pciOf(const fs::path& device) {
  std::error_code error;
  const auto real = fs::canonical(device, error);
  return error ? device.filename().string() : real.filename().string();
}

void addNvmes(const fs::path& root, std::vector<wire::Part>& out) {
  for (const auto& controller : childrenOf(root / "sys/class/nvme")) {
    const auto transport = line(controller / "transport");
    if (!transport.empty() && transport != "pcie") continue;  // remote storage is no part
    wire::Part part{"nvme", pciOf(controller / "device"), line(controller / "model"),
                    line(controller / "serial"), line(controller / "firmware_rev")};
    for (const auto& block : childrenOf(root / "sys/block"))
      if (block.filename().string().starts_with(controller.filename().string() + "n"))
        part.size_bytes += std::strtoull(line(block / "size").c_str(), nullptr, 10) * kSectorBytes;
    out.push_back(std::move(part));
  }
}

/// "NVIDIA ConnectX-7 … (15b3:1021 mlx5_0)": the card's own name when it has one, always the PCI
/// ids, so that either can be matched.
std::string nicModel(const fs::path& device, const std::string& rdma) {
  const auto id = [&](const char* file) { return line(device / file).substr(0, 6); };
  const auto vendor = id("vendor"), product = id("device");
  auto ids = vendor.starts_with("0x") && product.starts_with("0x")
                 ? vendor.substr(2) + ":" + product.substr(2)
                 : std::string("virtual");
  if (!rdma.empty()) ids += " " + rdma;
  std::error_code error;
  const auto vpd = fs::exists(device / "vpd", error) ? io::readFile(device / "vpd", kMaxSysfsBytes)
                                                     : Result<std::string>("");
  const auto name = vpd ? vpdName(*vpd) : std::string();
  return name.empty() ? ids : name + " (" + ids + ")";
}

/// A card's port that is a NIC, an RDMA device or both; ports with one PCI address are one.
void addNics(const fs::path& root, std::vector<wire::Part>& out) {
  std::map<std::string, wire::Part> by_place;
  for (const auto& net : childrenOf(root / "sys/class/net")) {
    std::error_code error;
    if (!fs::exists(net / "device", error)) continue;
    auto& part = by_place[pciOf(net / "device")];
    part = {"nic", pciOf(net / "device"), nicModel(net / "device", ""), line(net / "address"), ""};
    if (const auto driver =
            root == "/" ? nicDriver(net.filename().string()) : Result<NicDriver>(NicDriver{}))
      part.firmware = driver->firmware;
  }
  for (const auto& device : childrenOf(root / "sys/class/infiniband")) {
    std::error_code error;
    if (!fs::exists(device / "device", error)) continue;  // soft-RoCE is no part
    auto& part = by_place[pciOf(device / "device")];
    part.kind = "nic";
    part.place = pciOf(device / "device");
    part.model = nicModel(device / "device", line(device / "hca_type"));
    if (part.serial.empty()) part.serial = line(device / "node_guid");
    if (const auto firmware = line(device / "fw_ver"); !firmware.empty()) part.firmware = firmware;
  }
  for (auto& [place, part] : by_place) out.push_back(std::move(part));
}

/// RDMA adapters by the serial of their board, which no driver, bond or port of theirs changes;
/// virtual functions and subfunctions are no boards. All or none: one that does not answer now must
/// not look like another one.
void addHcas(const fs::path& root, std::vector<wire::Part>& out) {
  std::vector<wire::Part> found;
  for (const auto& device : childrenOf(root / "sys/class/infiniband")) {
    const auto pci = device / "device";
    std::error_code error;
    if (!fs::exists(pci, error) || fs::exists(pci / "physfn", error)) continue;
    if (fs::exists(pci / "subsystem", error) &&
        fs::canonical(pci / "subsystem", error).filename() != "pci")
      continue;
    wire::Part part{"hca", pciOf(pci), nicModel(pci, line(device / "hca_type")), "",
                    line(device / "fw_ver")};
    if (fs::exists(pci / "vpd", error)) {
      const auto vpd = io::readFile(pci / "vpd", kMaxSysfsBytes);
      if (!vpd) return;
      part.serial = vpdSerial(*vpd);
    }
    if (part.serial.empty())
      if (const auto guid = line(device / "node_guid"); isIdentity(guid)) part.serial = guid;
    found.push_back(std::move(part));
  }
  std::move(found.begin(), found.end(), std::back_inserter(out));
}

/// What the driver writes for each NVSwitch: "BIOS Version: …", "UUID: …"
/// (open-gpu-kernel-modules, procfs_nvswitch.c).
void addNvSwitches(const fs::path& root, std::vector<wire::Part>& out) {
  for (const auto& device : childrenOf(root / "proc/driver/nvidia-nvswitch/devices")) {
    const auto text = io::readFile(device / "information", kMaxSysfsBytes);
    if (!text) continue;
    const auto valueOf = [&text](std::string_view key) {
      const auto at = ("\n" + *text).find("\n" + std::string(key) + ": ");
      if (at == std::string::npos) return std::string();
      const auto begin = at + key.size() + 2;
      return clean(std::string_view(*text).substr(begin, text->find('\n', begin) - begin));
    };
    out.push_back({"nvswitch", device.filename().string(), "NVSwitch", valueOf("UUID"),
                   valueOf("BIOS Version")});
  }
}

/// The BMC beside this machine by the GUID that it says over IPMI (ABI
/// sysfs-devices-platform-ipmi).
void addBmcs(const fs::path& root, std::vector<wire::Part>& out) {
  for (const auto& device : childrenOf(root / "sys/bus/platform/devices")) {
    if (!device.filename().string().starts_with("ipmi_bmc.")) continue;
    const auto guid = line(device / "guid");
    out.push_back({"bmc", device.filename().string(),
                   line(device / "manufacturer_id") + ":" + line(device / "product_id"),
                   isIdentity(guid) ? guid : "", line(device / "firmware_revision")});
  }
}

}  // namespace

std::vector<wire::Part> dimmsOf(std::string_view table) {
  std::vector<wire::Part> out;
  while (table.size() >= kHeaderBytes && out.size() < wire::kMaxDevices) {
    const auto type = byteAt(table, 0);
    const std::size_t length = byteAt(table, 1);
    if (length < kHeaderBytes || length > table.size() || type == kEndOfTable) break;
    const auto formatted = table.substr(0, length);
    auto strings = table.substr(length);
    const auto end = strings.find(std::string_view("\0\0", 2));
    if (end == std::string_view::npos) break;
    strings = strings.substr(0, end + 1);
    if (type == kMemoryDevice) {
      if (const auto size = dimmBytes(formatted); size > 0) {
        auto model = stringAt(strings, byteAt(formatted, 0x17)) + " " +
                     stringAt(strings, byteAt(formatted, 0x1a));
        out.push_back({"dimm", stringAt(strings, byteAt(formatted, 0x10)), clean(model),
                       stringAt(strings, byteAt(formatted, 0x18)), "", size});
      }
    }
    table.remove_prefix(length + end + 2);
  }
  return out;
}

std::string vpdName(std::string_view vpd) {
  if (vpd.size() < 3 || byteAt(vpd, 0) != 0x82) return {};
  const auto length = numberAt(vpd, 1, 2);
  return length + 3 <= vpd.size() ? clean(vpd.substr(3, length)) : std::string();
}

std::string vpdSerial(std::string_view vpd) {
  constexpr std::uint8_t kLarge = 0x80, kReadOnly = 0x90;
  constexpr std::size_t kResourceHeader = 3, kFieldHeader = 3;
  while (vpd.size() >= kResourceHeader && (byteAt(vpd, 0) & kLarge) != 0) {
    const auto length = numberAt(vpd, 1, 2);
    const auto tag = byteAt(vpd, 0);
    vpd.remove_prefix(kResourceHeader);
    auto fields = vpd.substr(0, length);
    while (tag == kReadOnly && fields.size() >= kFieldHeader) {
      const std::size_t size = byteAt(fields, 2);
      if (fields.starts_with("SN")) return clean(fields.substr(kFieldHeader, size));
      fields.remove_prefix(std::min(fields.size(), kFieldHeader + size));
    }
    vpd.remove_prefix(std::min<std::size_t>(vpd.size(), length));
  }
  return {};
}

std::vector<wire::Part> partsOf(const fs::path& root) {
  std::vector<wire::Part> out;
  std::error_code error;
  const auto table = root / "sys/firmware/dmi/tables/DMI";
  if (fs::exists(table, error))
    if (const auto text = io::readFile(table, kMaxSmbiosBytes)) out = dimmsOf(*text);
  addNvmes(root, out);
  addNics(root, out);
  addHcas(root, out);
  addNvSwitches(root, out);
  addBmcs(root, out);
  if (out.size() > wire::kMaxDevices) out.resize(wire::kMaxDevices);
  return out;
}

Result<NicDriver> nicDriver(const std::string& interface) {
  const io::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (!socket.valid() || ::ioctl(socket.get(), SIOCETHTOOL, &request) != 0)
    return fail(ErrorCode::NotFound,
                fmt::format("{} does not name its driver: {}", interface, std::strerror(errno)));
  auto text = [](const char* field, std::size_t size) {
    return clean(std::string_view(field, ::strnlen(field, size)));
  };
  return NicDriver{text(info.driver, sizeof info.driver), text(info.version, sizeof info.version),
                   text(info.fw_version, sizeof info.fw_version)};
}

}  // namespace muster::agent
