// SPDX-License-Identifier: Apache-2.0
// The tables of `console`, `ipmi`, `pdu`, `bmc_certificate` and `tpm` of a profile.
#include "base/io/regular_file.h"
#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace muster::inventory {

namespace {

constexpr int kLastPort = 65'535;
constexpr std::size_t kMaxRootsBytes = 1u << 20;

constexpr TextFormat kConsolePath{"an absolute path; {node} stands for the node's name",
                                  R"(^/[A-Za-z0-9._/{}-]+$)", "/run/consoles/{node}.sock"};
constexpr TextFormat kConsoleCommand{"a command line of the BMC", "^[!-~][ -~]{0,199}$", "vsp"};
constexpr TextFormat kProgramWord{"a word of a command, without a shell", "^.{1,300}$", "{node}"};
constexpr int kMaxCipherSuite = 17, kMaxSecondsOff = 3'600;
constexpr TextFormat kPcr{"the number of a PCR, 0 to 23", "^(1?[0-9]|2[0-3])$", "7"};

void checkConsole(ConsoleSpec& console, const Value& map, Reader& reader) {
  const bool socket = console.via == ConsoleVia::Socket,
             redfish = console.via == ConsoleVia::Redfish,
             account = redfish || console.via == ConsoleVia::Sol;
  if (socket && console.path.empty())
    reader.error(map, "a console by socket needs its path", "add path: /run/consoles/{node}.sock");
  if (const Value* path = map.findKey("path"); path && !socket)
    reader.error(*path, "path is for via: socket only", "remove it");
  if (const Value* command = map.findKey("command"); command && !redfish)
    reader.error(*command, "command is for via: redfish only", "remove it");
  for (std::string_view key : {"port", "credential"})
    if (const Value* found = map.findKey(key); found && !account)
      reader.error(*found, fmt::format("{} is for via: sol and via: redfish only", key),
                   "remove it");
}

void checkTpm(TpmSpec& tpm, const Value& map, Reader& reader) {
  if (tpm.pcrs.empty())
    reader.error(place(map, "pcrs"),
                 "a TPM policy without PCRs proves nothing about what was booted",
                 "name at least one PCR with its values");
}

bool holdsCertificate(std::string_view pem) {
  return pem.find("-----BEGIN CERTIFICATE-----") != std::string_view::npos;
}

/// The content counts, not the path.
void readRoots(TpmSpec& tpm, const Value& value, const Shape& shape, Reader& reader) {
  std::filesystem::path path;
  const std::size_t errors = reader.errors;
  readInto(path, value, shape, reader);
  if (reader.errors != errors) return;
  tpm.ek_roots_pem = io::readRegularFile(path, kMaxRootsBytes).value_or("");
  if (tpm.ek_roots_pem.size() > kMaxRootsBytes || !holdsCertificate(tpm.ek_roots_pem))
    return reader.error(
        value, fmt::format("{} cannot be read, or holds no certificate in PEM", path.string()),
        "name a file with the TPM makers' root certificates");
}

ObjectSpec make_consoleSpec() {
  return Table<ConsoleSpec>("console", "console",
                            "Where the serial console of its machines is; docs/console.md.")
      .required("via", &ConsoleSpec::via, choice({"none", "sol", "redfish", "libvirt", "socket"}),
                "sol: IPMI serial over LAN of the BMC's host. redfish: by SSH, where the BMC's "
                "Redfish says (SerialConsole). libvirt: of a BMC that is libvirt:DOMAIN. socket: a "
                "Unix socket or a terminal device on this host.")
      .optional("port", &ConsoleSpec::port, integer(1, kLastPort),
                "For sol: of IPMI; absent: 623. For redfish: of SSH; absent: what the BMC says.")
      .prints([](const ConsoleSpec& console, const Printer&) -> nlohmann::json {
        if (console.via == ConsoleVia::Sol) return console.port.value_or(kIpmiPort);
        return console.port ? nlohmann::json(*console.port) : nlohmann::json();
      })
      .optional("credential", &ConsoleSpec::credential, reference("credentials"),
                "The account for sol and redfish; absent: the BMC's.")
      .optional("command", &ConsoleSpec::command, text(kConsoleCommand),
                "For redfish: what is typed at the BMC's command line to get to the console; "
                "absent: what the BMC says.")
      .optional("path", &ConsoleSpec::path, text(kConsolePath), "For socket.")
      .check(checkConsole)
      .spec();
}

/// What a hook may stand for; anything else in braces would reach the PDU as it is written.
void checkHook(const std::vector<std::string>& words, const Value& where, Reader& reader) {
  for (const auto& word : words)
    for (auto open = word.find('{'); open != std::string::npos; open = word.find('{', open + 1)) {
      const auto name = word.substr(open, word.find('}', open) == std::string::npos
                                              ? std::string::npos
                                              : word.find('}', open) - open + 1);
      if (name != "{node}" && name != "{rack}" && name != "{unit}")
        reader.error(where, fmt::format("{} stands for nothing here", shorten(name)),
                     "use {node}, {rack} or {unit}");
    }
}

void checkPdu(PowerHook& hook, const Value& map, Reader& reader) {
  checkHook(hook.off, place(map, "off"), reader);
  checkHook(hook.on, place(map, "on"), reader);
  if (!hook.off.empty() && hook.off == hook.on)
    reader.error(place(map, "on"), "off and on are the same command",
                 "say in one of them which it is");
  const auto named = [](const std::string& word) { return word.find('{') != std::string::npos; };
  for (const auto* words : {&hook.off, &hook.on})
    if (!words->empty() && std::none_of(words->begin(), words->end(), named))
      reader.error(map,
                   "the command names no machine: it would switch the same outlet for all of them",
                   "use {node}, or {rack} and {unit}");
}

ObjectSpec make_ipmiSpec() {
  return Table<IpmiSpec>("ipmi", "IPMI",
                         "IPMI of the BMC's host beside its Redfish, with the BMC's account: for "
                         "what Redfish does not offer or does not answer; docs/bmc.md.")
      .optional("port", &IpmiSpec::port, integer(1, kLastPort), "Where RMCP+ is answered.")
      .optional("cipher_suite", &IpmiSpec::cipher_suite, integer(0, kMaxCipherSuite),
                "Of RMCP+; 17 is HMAC-SHA-256, 3 what older BMCs have.")
      .printsAlways()
      .spec();
}

ObjectSpec make_pduSpec() {
  return Table<PowerHook>("pdu", "PDU",
                          "Who takes the power away from its machines and gives it back, where the "
                          "BMC cannot cut standby power itself; docs/bmc.md.")
      .required("off", &PowerHook::off, listOf(text(kProgramWord), 1),
                "Program and arguments, run without a shell; {node}, {rack} and {unit} are the "
                "node's. Exit 0: the outlets are off.")
      .required("on", &PowerHook::on, listOf(text(kProgramWord), 1),
                "The same, for on. May be run when they are on already.")
      .optional("seconds_off", &PowerHook::seconds_off, integer(1, kMaxSecondsOff),
                "How long the power stays away.")
      .printsAlways()
      .check(checkPdu)
      .spec();
}

ObjectSpec make_bmcCertificateSpec() {
  return Table<BmcCertificateSpec>(
             "bmc-certificate", "BMC certificate",
             "Who signs the certificates that `muster bmc certificate` installs; docs/bmc.md.")
      .required(
          "sign", &BmcCertificateSpec::sign, listOf(text(kProgramWord), 1),
          "Program and arguments, run without a shell; the request (PEM) is its standard input, "
          "certificate and chain (PEM) its output. {node}, {rack} and {unit} are the node's.")
      .check([](BmcCertificateSpec& spec, const Value& map, Reader& reader) {
        checkHook(spec.sign, place(map, "sign"), reader);
      })
      .spec();
}

ObjectSpec make_tpmSpec() {
  return Table<TpmSpec>("tpm", "TPM",
                        "What the machine's TPM 2.0 must prove before the machine gets its "
                        "certificate, and with it anything secret; docs/threat-model.md.")
      .required("pcrs", &TpmSpec::pcrs, mapOf(listOf(text(kSha256), 1), kPcr),
                "PCRs of the SHA-256 bank, each with the values that are right.")
      .custom("ek_roots", false, text(kPath),
              "Certificates (PEM) of the TPM's makers: the EK's own certificate must lead to one "
              "of them. Absent: the EK met first is the node's.",
              readRoots)
      .prints([](const TpmSpec& tpm, const Printer&) -> nlohmann::json { return tpm.ek_roots_pem; })
      .printsAlways()
      .check(checkTpm)
      .spec();
}

}  // namespace

MUSTER_SPEC(consoleSpec)
MUSTER_SPEC(ipmiSpec)
MUSTER_SPEC(pduSpec)
MUSTER_SPEC(bmcCertificateSpec)
MUSTER_SPEC(tpmSpec)

}  // namespace muster::inventory
