// SPDX-License-Identifier: Apache-2.0
#include "lab/domain_xml.h"

#include "base/markup.h"

#include <nlohmann/json.hpp>

namespace muster::lab {

namespace {

/// What QEMU has for a processor, in the words of libvirt and of Debian's packages.
struct Board {
  Architecture arch;
  const char* machine;
  const char* code;  ///< UEFI
  const char* variables;
  const char* features;
  const char* serial;       ///< the first serial port
  const char* bios_serial;  ///< SeaBIOS talks on it, too
};
constexpr Board kBoards[] = {
    {Architecture::Amd64, "q35", "/usr/share/OVMF/OVMF_CODE_4M.fd",
     "/usr/share/OVMF/OVMF_VARS_4M.fd", "    <apic/>\n", "<target type='isa-serial' port='0'/>",
     "    <bios useserial='yes'/>\n"},
    {Architecture::Arm64, "virt", "/usr/share/AAVMF/AAVMF_CODE.fd",
     "/usr/share/AAVMF/AAVMF_VARS.fd", "    <gic version='3'/>\n",
     "<target type='system-serial' port='0'/>", ""}};

const Board& boardOf(const DomainSpec& spec) {
  return kBoards[static_cast<std::size_t>(spec.arch)];
}

std::string sysinfo(const DomainSpec& spec, const std::string& bios_version) {
  return fmt::format(R"(  <sysinfo type='smbios'>
    <bios>
      <entry name='vendor'>muster</entry>
      <entry name='version'>{}</entry>
    </bios>
    <system>
      <entry name='manufacturer'>muster</entry>
      <entry name='product'>Virtual Node</entry>
      <entry name='serial'>{}</entry>
      <entry name='uuid'>{}</entry>
      <entry name='sku'>sim-gpus={}</entry>
      <entry name='family'>{}</entry>
    </system>
  </sysinfo>
)",
                     escapedMarkup(bios_version), escapedMarkup(spec.serial), spec.uuid, spec.gpus,
                     escapedMarkup(spec.gpu_model));
}

std::string firmware(const DomainSpec& spec) {
  const auto& board = boardOf(spec);
  std::string loader;
  if (spec.uefi)
    loader = fmt::format(
        "    <loader readonly='yes' type='pflash'>{}</loader>\n    <nvram "
        "template='{}'>{}</nvram>\n",
        board.code, board.variables, escapedMarkup(spec.nvram.string()));
  return fmt::format(
      "  <os>\n    <type arch='{}' machine='{}'>hvm</type>\n{}    <smbios mode='sysinfo'/>\n{}  "
      "</os>\n",
      traitsOf(spec.arch).uname, board.machine, loader, board.bios_serial);
}

/// A drive that the virtual BMC shows: tried first, for this start.
std::string cdrom(const DomainSpec& spec, const std::filesystem::path& image) {
  if (image.empty()) return {};
  const bool scsi = spec.arch == Architecture::Arm64;  // its board has no SATA
  return fmt::format(
      "    <disk type='file' device='cdrom'>\n      <driver name='qemu' type='raw'/>\n      "
      "<source "
      "file='{}'/>\n      <target dev='{}' bus='{}'/>\n      <readonly/>\n      <boot "
      "order='1'/>\n "
      "     <alias name='{}'/>\n    </disk>\n{}",
      escapedMarkup(image.string()), kCdTarget, scsi ? "scsi" : "sata", kCdAlias,
      scsi ? "    <controller type='scsi' model='virtio-scsi'/>\n" : "");
}

std::string devices(const DomainSpec& spec, const vbmc::StartOptions& start) {
  const bool network_first = start.first == vbmc::BootDevice::Network;
  const int after_cd = start.cd_file.empty() ? 0 : 1;
  return fmt::format(
      R"(  <devices>
    <emulator>/usr/bin/qemu-system-{}</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='unsafe' discard='unmap' detect_zeroes='unmap'/>
      <source file='{}'/>
      <target dev='vda' bus='virtio'/>
      <serial>{}</serial>
      <boot order='{}'/>
    </disk>
{}    <interface type='bridge'>
      <source bridge='{}'/>
      <mac address='{}'/>
      <model type='virtio'/>
      <boot order='{}'/>
    </interface>
    <serial type='unix'>
      <source mode='bind' path='{}'/>
      <log file='{}' append='on'/>
      {}
    </serial>
    <rng model='virtio'>
      <backend model='random'>/dev/urandom</backend>
    </rng>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
  </devices>
)",
      traitsOf(spec.arch).uname, escapedMarkup(spec.disk.string()), escapedMarkup(spec.disk_serial),
      after_cd + (network_first ? 2 : 1), cdrom(spec, start.cd_file), spec.bridge, spec.mac.str(),
      after_cd + (network_first ? 1 : 2), escapedMarkup(spec.console_socket.string()),
      escapedMarkup(spec.console_log.string()), boardOf(spec).serial);
}

/// QEMU leaves memory barriers out of emulated code when a machine can never have a second
/// processor, although its devices work in threads of their own: a virtio queue then misses a
/// wake-up and stands still ("transmit queue timed out" in the guest; seen with QEMU 7.2 under RDMA
/// load). Room for a second processor, which stays off, brings the barriers back.
std::string vcpuElement(int vcpus, bool kvm) {
  return kvm || vcpus != 1 ? fmt::format("<vcpu>{}</vcpu>", vcpus) : "<vcpu current='1'>2</vcpu>";
}

/// An emulated processor is one of x86-64-v2: what AVX and FMA do is emulated five times slower
/// (100 s of processor time for a quick host.gemm by QEMU 7.2, 28 s without), and programs choose
/// them where they are.
std::string cpuElement(const DomainSpec& spec, bool kvm) {
  if (kvm) return "  <cpu mode='host-passthrough'/>\n";
  // Without signed return addresses, whose emulation takes most of the time.
  if (spec.arch == Architecture::Arm64)
    return "  <cpu mode='custom' match='exact'>\n    <model>cortex-a57</model>\n  </cpu>\n";
  std::string xml = "  <cpu mode='maximum'>\n";
  for (const auto* feature : {"avx", "avx2", "f16c", "fma"})
    xml += fmt::format("    <feature policy='disable' name='{}'/>\n", feature);
  return xml + "  </cpu>\n";
}

}  // namespace

std::string domainXml(const DomainSpec& spec, const vbmc::StartOptions& start) {
  bool kvm = spec.accel == Accel::Kvm;
  std::string xml = fmt::format(
      "<domain type='{}'>\n  <name>{}</name>\n  <uuid>{}</uuid>\n  <memory "
      "unit='MiB'>{}</memory>\n  {}\n",
      kvm ? "kvm" : "qemu", escapedMarkup(spec.name), spec.uuid, spec.memory_mib,
      vcpuElement(spec.vcpus, kvm));
  xml += sysinfo(spec, start.bios_version);
  xml += firmware(spec);
  xml += fmt::format("  <features>\n    <acpi/>\n{}  </features>\n", boardOf(spec).features);
  xml += cpuElement(spec, kvm);
  xml +=
      "  <on_poweroff>destroy</on_poweroff>\n  <on_reboot>restart</on_reboot>\n  "
      "<on_crash>destroy</on_crash>\n";
  xml += devices(spec, start);
  return xml + "</domain>\n";
}

nlohmann::json toJson(const DomainSpec& spec) {
  return {{"name", spec.name},
          {"uuid", spec.uuid},
          {"serial", spec.serial},
          {"disk_serial", spec.disk_serial},
          {"mac", spec.mac.str()},
          {"bridge", spec.bridge},
          {"memory_mib", spec.memory_mib},
          {"vcpus", spec.vcpus},
          {"uefi", spec.uefi},
          {"kvm", spec.accel == Accel::Kvm},
          {"gpus", spec.gpus},
          {"gpu_model", spec.gpu_model},
          {"arch", traitsOf(spec.arch).name},
          {"disk", spec.disk.string()},
          {"nvram", spec.nvram.string()},
          {"console_socket", spec.console_socket.string()},
          {"console_log", spec.console_log.string()}};
}

Result<DomainSpec> domainFromJson(const nlohmann::json& json) {
  try {
    DomainSpec spec;
    spec.name = json.at("name");
    spec.uuid = json.at("uuid");
    spec.serial = json.at("serial");
    spec.disk_serial = json.at("disk_serial");
    TRY(mac, Mac::parse(json.at("mac").get<std::string>()));
    spec.mac = mac;
    spec.bridge = json.at("bridge");
    spec.memory_mib = json.at("memory_mib");
    spec.vcpus = json.at("vcpus");
    spec.uefi = json.at("uefi");
    spec.accel = json.at("kvm").get<bool>() ? Accel::Kvm : Accel::Tcg;
    spec.gpus = json.at("gpus");
    spec.gpu_model = json.at("gpu_model");
    const auto arch = json.value("arch", std::string(traitsOf(Architecture::Amd64).name));
    for (const auto& traits : kArchitectures)
      if (arch == traits.name) spec.arch = traits.architecture;
    for (auto [key, path] : {std::pair{"disk", &spec.disk},
                             {"nvram", &spec.nvram},
                             {"console_socket", &spec.console_socket},
                             {"console_log", &spec.console_log}})
      *path = json.at(key).get<std::string>();
    return spec;
  } catch (const nlohmann::json::exception& problem) {
    return fail(ErrorCode::Corrupt,
                fmt::format("not a virtual node's description: {}", problem.what()));
  }
}

}  // namespace muster::lab
