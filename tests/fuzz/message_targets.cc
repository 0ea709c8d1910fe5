// SPDX-License-Identifier: Apache-2.0
// What agents, mirrors and peers send: messages, proofs, indexes of packs, .torrent files. What is
// read is printed and read again: the controller hands it on as text.
#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/json_input.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "tests/fuzz/targets.h"
#include "wire/attestation.h"
#include "wire/controllers.h"
#include "wire/device_firmware.h"
#include "wire/health.h"
#include "wire/messages.h"
#include "wire/metainfo.h"
#include "wire/pack_index.h"
#include "wire/partition_table.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kMaxMessageInput = 64u << 10;

/// What was read can be told on, and is the same when it is read there.
template <class Read>
void readAndTell(Read read, std::string_view input, const char* promise) {
  const auto message = read(input);
  if (!message) return;
  const auto told = toJson(*message);
  const auto again = read(told);
  require(again && toJson(*again) == told, promise);
}

void messages(std::string_view input) {
  using namespace wire;
  readAndTell(parsePollRequest, input, "a poll that was read is printed and read again");
  readAndTell(parsePollResponse, input, "a response that was read is printed and read again");
  readAndTell(parseEnrollRequest, input, "an enrollment that was read is printed and read again");
  readAndTell(parseEnrollResponse, input,
              "an enrollment's answer that was read is printed and read again");
  readAndTell(parseReports, input, "reports that were read are printed and read again");
  readAndTell(parseHardware, input, "hardware that was read is printed and read again");
  readAndTell(parseCheckResults, input, "results that were read are printed and read again");
  readAndTell(parseHealthReport, input, "a health report that was read is printed and read again");
  (void)parseDeviceFirmware(input);
  (void)parseFirmwareTask(input);
  (void)parseControllers(input);
}

void attestation(std::string_view input) {
  using namespace wire;
  readAndTell(parseAttestRequest, input,
              "a proof's request that was read is printed and read again");
  readAndTell(parseAttestChallenge, input, "a challenge that was read is printed and read again");
  readAndTell(parseAttestedRequest, input, "a proof that was read is printed and read again");
}

void pack(std::string_view input) {
  if (const auto index = wire::readIndex(input)) {
    std::uint64_t end = 0;
    for (const auto& chunk : index->chunks) {
      require(chunk.offset + chunk.length <= index->pack_bytes && chunk.offset >= end,
              "a chunk lies within its pack");
      end = chunk.offset + chunk.length;
    }
    const auto told = wire::canonicalJson(*index);
    const auto again = wire::readIndex(told);
    require(again && wire::canonicalJson(*again) == told,
            "an index that was read is printed and read again");
  }
  (void)wire::openIndex(input, "", "");
  const auto table = wire::readPartitionTable(input);
  (void)table.partitions.size();
  (void)wire::sectorBytesOfTable(input);
}

void metainfo(std::string_view input) {
  const auto read = wire::readMetainfo(std::string(input));
  if (read)
    require(read->hashes().size() == std::size_t{read->pieces} * wire::kPieceHashBytes,
            "every piece has its hash");
}

/// The one parser of foreign JSON, as each party may speak.
void json(std::string_view input) {
  for (const auto& limits : {kAgentJson, kBmcJson, kToolJson, kIndexJson, kServerJson, kKeptJson}) {
    const auto read = parseJson(input, limits);
    if (!read) continue;
    const auto told = jsonText(*read);
    const auto again = parseJson(told, kKeptJson);
    require(again && jsonText(*again) == told, "JSON that was read is printed and read again");
  }
}

/// What unknown senders say, on its way to people.
void text(std::string_view input) {
  const auto line = printable(input);
  require(std::none_of(line.begin(), line.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }),
          "a printable line has no control characters");
  require(printable(line) == line, "what is printable stays as it is");
  const auto lines = printableLines(input);
  require(lines.find('\x1b') == std::string::npos && lines.find('\r') == std::string::npos,
          "printable lines move no terminal");
  const auto field = csvField(input);
  require(field.empty() || std::string_view("=+@").find(field.front()) == std::string_view::npos ||
              std::isdigit(static_cast<unsigned char>(field.back())),
          "no field of a CSV is a formula");
}

constexpr std::array<std::string_view, 24> kMessageWords = {
    "\"mode\":\"ram\"", "\"boot_id\":",  "\"agent_version\":",
    "\"probes\":{",     "\"reports\":[", "\"hardware\":",
    "\"session\":",     "\"sequence\":", "\"unchanged_since\":",
    "\"start\":[",      "\"forget\":[",  "\"enrolment\":",
    "\"csr\":",         "\"mac\":",      "\"phase\":\"done\"",
    "\"fraction\":",    "\"result\":",   "\"symptoms\":",
    "\"sources\":",     "\"results\":[", "\"values\":{",
    "\"evidence\":",    "\\u0000",       "\\ud800"};
constexpr std::array<std::string_view, 12> kPackWords = {
    "\"chunks\":[",   "\"sha256\":",     "\"packed\":",       "\"quick\":",
    "\"zero\":true",  "\"offset\":",     "\"length\":",       "\"pack_bytes\":",
    "\"signature\":", "\"size_bytes\":", "\"sector_bytes\":", "18446744073709551615"};
constexpr std::array<std::string_view, 6> kMetainfoWords = {
    "d4:infod", "6:lengthi", "12:piece lengthi", "6:pieces", "7:privatei1e", "ee"};

constexpr std::array<std::string_view, 9> kTextWords = {
    "\x1b[2J", "\xc2\x9b", "\xe2\x80\xae", "\xef\xbb\xbf", "\xed\xa0\x80",
    "\r\n",    "=1+1",     "-2",           "\"\""};

constexpr std::array kTargets = {
    Target{"messages", kMaxMessageInput, messages, kMessageWords},
    Target{"json", kMaxMessageInput, json, kMessageWords},
    Target{"text", 8'192, text, kTextWords},
    Target{"attestation", kMaxMessageInput, attestation, kMessageWords},
    Target{"pack", kMaxMessageInput, pack, kPackWords},
    Target{"metainfo", kMaxMessageInput, metainfo, kMetainfoWords},
};

}  // namespace

std::span<const Target> messageTargets() { return kTargets; }

}  // namespace muster::fuzz
