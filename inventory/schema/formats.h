// SPDX-License-Identifier: Apache-2.0
// The kinds of text that an inventory holds.
#pragma once

#include "inventory/schema/spec.h"

namespace muster::inventory {

Result<void> checkHostName(std::string_view text);
Result<void> checkSha256(std::string_view text);
Result<void> checkMac(std::string_view text);
Result<void> checkVersion(std::string_view text);
Result<void> checkFingerprint(std::string_view text);
Result<void> checkSshHostKey(std::string_view text);
Result<void> checkSshKey(std::string_view text);
Result<void> checkDisk(std::string_view text);
Result<void> checkKernelArgument(std::string_view text);
Result<void> checkBmcUrl(std::string_view text);
Result<void> checkServerUrl(std::string_view text);
Result<void> checkTaint(std::string_view text);
Result<void> checkRouting(std::string_view text);
/// Decided elsewhere, with a better message: hostlists and addresses by their own parsers.
inline Result<void> acceptAny(std::string_view) { return {}; }

inline constexpr TextFormat kText{"text", "", "text"};
inline constexpr TextFormat kPath{"a path, from the inventory's folder", "", "secrets/bmc"};
inline constexpr TextFormat kCommand{"a command line", "", "pass show bmc"};
inline constexpr TextFormat kEntryName{"a name of letters, digits, '.', '_', '-'",
                                       "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "noble-gpu"};
inline constexpr TextFormat kClusterName{"a name of at most 32 lower-case letters, digits and '-'",
                                         "^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$", "hall-2"};
inline constexpr TextFormat kHostName{"a host name", "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
                                      "gpu001", checkHostName};
inline constexpr TextFormat kHostlist{"a hostlist", R"(^[A-Za-z0-9._\-\[\], ]+$)",
                                      "gpu[001-128,200]", acceptAny};
inline constexpr TextFormat kPlaces{"a hostlist, - for an empty place, or N free",
                                    R"(^(-|[1-9][0-9]* free|[A-Za-z0-9._\-\[\], ]+)$)",
                                    "gpu[001-015]", acceptAny};
inline constexpr TextFormat kSha256{"a SHA-256 digest", "^[0-9a-f]{64}$", "64 hex digits",
                                    checkSha256};
inline constexpr TextFormat kFingerprint{"the SHA-256 fingerprint of a certificate",
                                         "^([0-9A-Fa-f]{64}|[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31})$",
                                         "64 hex digits", checkFingerprint};
inline constexpr TextFormat kSshHostKey{"a host key, TYPE and BASE64",
                                        "^(ssh-|ecdsa-)\\S+ [A-Za-z0-9+/]+=*( .*)?$",
                                        "ssh-ed25519 AAAA…", checkSshHostKey};
inline constexpr TextFormat kMac{"a MAC address",
                                 "^([0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(-[0-9A-Fa-f]{"
                                 "2}){5}|[0-9A-Fa-f]{4}([.][0-9A-Fa-f]{4}){2}|[0-9A-Fa-f]{12})$",
                                 "52:54:00:20:00:01", checkMac};
inline constexpr TextFormat kIpv4{"an IPv4 address", R"(^(\d{1,3}\.){3}\d{1,3}$)", "10.20.1.1",
                                  acceptAny};
inline constexpr TextFormat kCidr{"a network in CIDR form", R"(^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$)",
                                  "10.20.0.0/16", acceptAny};
inline constexpr TextFormat kIpv4Range{"a range of addresses",
                                       R"(^(\d{1,3}\.){3}\d{1,3} ?- ?(\d{1,3}\.){3}\d{1,3}$)",
                                       "10.20.240.1-10.20.247.254", acceptAny};
inline constexpr TextFormat kBmcUrl{
    "a BMC address",
    R"(^(https://([^\s/@:]+@)?[A-Za-z0-9.-]+(:\d{1,5})?/?|libvirt:[A-Za-z0-9._-]+)$)",
    "https://10.20.250.1", checkBmcUrl};
inline constexpr TextFormat kServerUrl{
    "the https URL of an API server", R"(^https://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?$)",
    "https://10.20.0.2:6443", checkServerUrl};
inline constexpr TextFormat kTaint{
    "a taint, KEY[=VALUE]:NoSchedule",
    "^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
    "(=([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?)?:NoSchedule$",
    "muster/out:NoSchedule", checkTaint};
inline constexpr TextFormat kLabelKey{
    "the name of a Kubernetes label",
    "^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
    "example.com/hall"};
inline constexpr TextFormat kLabelValue{
    "the value of a Kubernetes label: at most 63 letters, digits, '.', '_', '-'",
    "^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$", "hall-2"};
inline constexpr TextFormat kDomain{
    "a DNS domain", "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$",
    "hall-2.example.com"};
inline constexpr TextFormat kLink{"an InfiniBand width and speed",
                                  "^(1|2|4|8|12)x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)$",
                                  "4xHDR"};
inline constexpr TextFormat kCheckName{"a check of the catalogue", "^[a-z]+[.][a-z0-9-]+$",
                                       "host.gemm"};
inline constexpr TextFormat kCheckParameter{"a parameter of a check",
                                            "^[A-Za-z][A-Za-z0-9_]{0,63}$", "min_gflops"};
inline constexpr TextFormat kCheckValue{"a number, or words on one line", R"(^\S+( \S+)*$)", "380",
                                        nullptr, true};
inline constexpr TextFormat kSwitchFirmware{"a version of switch firmware, three numbers",
                                            "^[0-9]{1,5}([.][0-9]{1,5}){2}$", "31.2012.1024"};
inline constexpr TextFormat kGroupFirmware{"a version of switch firmware, three numbers, or any",
                                           "^(any|[0-9]{1,5}([.][0-9]{1,5}){2})$", "31.2012.1024"};
inline constexpr TextFormat kSwitchPrefix{"the beginning of a switch's name, with - at its end",
                                          "^[A-Za-z][A-Za-z0-9-]{0,30}-$", "st-"};
inline constexpr TextFormat kRdmaDevice{"the name of an RDMA device",
                                        "^[A-Za-z][A-Za-z0-9_-]{0,30}$", "mlx5_0"};
inline constexpr TextFormat kPciAddress{
    "a PCI address", "^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$", "0000:18:00.0"};
/// Its pattern is made from the list of engines (model/opensm_routing.h).
extern const TextFormat kRouting;
inline constexpr TextFormat kPackage{
    "a package of apt or dnf, with or without =version",
    "^[A-Za-z0-9][A-Za-z0-9+._-]*(:[a-z0-9]+)?(=[A-Za-z0-9.+:~^_-]+)?$", "rdma-core=44.0-2"};
inline constexpr TextFormat kSuite{"a Debian or Ubuntu suite", "^[a-z][a-z0-9-]*$", "bookworm"};
inline constexpr TextFormat kRelease{"a release of a system with dnf, in quotes",
                                     "^[A-Za-z0-9][A-Za-z0-9.-]*$", "9"};
inline constexpr TextFormat kMirror{"an http or https URL", R"(^https?://\S+$)",
                                    "http://deb.debian.org/debian"};
inline constexpr TextFormat kModule{"a kernel module", "^[A-Za-z0-9_-]+$", "rdma_rxe"};
inline constexpr TextFormat kProbe{
    "a probe: nvml.driver, kernel, rdma.devices, module.NAME, package.NAME, … (docs/drivers.md)",
    R"(^(nvml\.driver|kernel|rdma\.devices|fabricmanager\.match|(module|module-version|module-file|nic-driver|nic-firmware)\.[A-Za-z0-9_-]+|service\.[A-Za-z0-9@_.:-]+|package\.[a-z0-9][a-z0-9+.-]*)$)",
    "nvml.driver"};
inline constexpr TextFormat kGlob{"a glob without spaces, commas and '='", R"(^[^\s,=]+$)",
                                  "570.*"};
inline constexpr TextFormat kVersion{"a version, as the BMC prints it", R"(^[ -~]*[!-~][ -~]*$)",
                                     "GB200Nvl-24.12-8", checkVersion};
inline constexpr TextFormat kWord{"text without spaces", R"(^\S+$)", "2.1.0"};
inline constexpr TextFormat kUserName{"a user name", R"(^[^\s:@/]+$)", "admin"};
inline constexpr TextFormat kEnvName{"the name of an environment variable",
                                     "^[A-Za-z_][A-Za-z0-9_]*$", "BMC_PASSWORD"};
inline constexpr TextFormat kSshKey{"an ssh public key", "^(ssh-|ecdsa-|sk-)",
                                    "ssh-ed25519 AAAA… admin", checkSshKey};
inline constexpr TextFormat kDisk{
    "a stable disk identity",
    R"(^(smallest|serial:\S+|wwn:\S+|size:[0-9.]+(GB|TB|MiB|GiB|TiB)-([0-9.]+(GB|TB|MiB|GiB|TiB))?)$)",
    "serial:S6CKNT0W700868", checkDisk};
inline constexpr TextFormat kKernelArgument{"one kernel argument", R"(^\S+$)", "iommu=pt",
                                            checkKernelArgument};

}  // namespace muster::inventory
