// The tables of `console` and `tpm` of a profile.
#include "inventory/binding.h"
#include "inventory/declared.h"
#include "inventory/formats.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace muster::inventory {

namespace {

constexpr int kLastPort = 65'535;
constexpr std::size_t kMaxRootsBytes = 1u << 20;

constexpr TextFormat kConsolePath{"an absolute path; {node} stands for the node's name", R"(^/[A-Za-z0-9._/{}-]+$)", "/run/consoles/{node}.sock"};
constexpr TextFormat kPcr{"the number of a PCR, 0 to 23", "^(1?[0-9]|2[0-3])$", "7"};

void checkConsole(ConsoleSpec& console, const Value& map, Reader& reader) {
  const bool socket = console.via == ConsoleVia::Socket, sol = console.via == ConsoleVia::Sol;
  if (socket && console.path.empty()) reader.error(map, "a console by socket needs its path", "add path: /run/consoles/{node}.sock");
  if (const Value* path = map.findKey("path"); path && !socket) reader.error(*path, "path is for via: socket only", "remove it");
  for (std::string_view key : {"port", "credential"})
    if (const Value* found = map.findKey(key); found && !sol) reader.error(*found, fmt::format("{} is for via: sol only", key), "remove it");
}

void checkTpm(TpmSpec& tpm, const Value& map, Reader& reader) {
  if (tpm.pcrs.empty()) reader.error(place(map, "pcrs"), "a TPM policy without PCRs proves nothing about what was booted", "name at least one PCR with its values");
}

bool holdsCertificate(std::string_view pem) { return pem.find("-----BEGIN CERTIFICATE-----") != std::string_view::npos; }

/// The content counts, not the path.
void readRoots(TpmSpec& tpm, const Value& value, const Shape& shape, Reader& reader) {
  std::filesystem::path path;
  const std::size_t errors = reader.errors;
  readInto(path, value, shape, reader);
  if (reader.errors != errors) return;
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  tpm.ek_roots_pem = content.str();
  if (tpm.ek_roots_pem.size() > kMaxRootsBytes || !holdsCertificate(tpm.ek_roots_pem))
    return reader.error(value, fmt::format("{} cannot be read, or holds no certificate in PEM", path.string()), "name a file with the TPM makers' root certificates");
}

ObjectSpec make_consoleSpec() {
  return Table<ConsoleSpec>("console", "console", "Where the serial console of its machines is; docs/console.md.")
      .required("via", &ConsoleSpec::via, choice({"none", "sol", "libvirt", "socket"}),
                "sol: IPMI serial over LAN of the BMC's host. libvirt: of a BMC that is libvirt:DOMAIN. socket: a Unix socket or a terminal device on this host.")
      .optional("port", &ConsoleSpec::port, integer(1, kLastPort), "The port of IPMI, for sol.")
      .optional("credential", &ConsoleSpec::credential, reference("credentials"), "The account for sol; absent: the BMC's.")
      .optional("path", &ConsoleSpec::path, text(kConsolePath), "For socket.")
      .check(checkConsole)
      .spec();
}

ObjectSpec make_tpmSpec() {
  return Table<TpmSpec>("tpm", "TPM", "What the machine's TPM 2.0 must prove before the machine gets its certificate, and with it anything secret; docs/threat-model.md.")
      .required("pcrs", &TpmSpec::pcrs, mapOf(listOf(text(kSha256), 1), kPcr), "PCRs of the SHA-256 bank, each with the values that are right.")
      .custom("ek_roots", false, text(kPath), "Certificates (PEM) of the TPM's makers: the EK's own certificate must lead to one of them. Absent: the EK met first is the node's.",
              readRoots)
      .check(checkTpm)
      .spec();
}

}  // namespace

MUSTER_SPEC(consoleSpec)
MUSTER_SPEC(tpmSpec)

}  // namespace muster::inventory
