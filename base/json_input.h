// SPDX-License-Identifier: Apache-2.0
// The one way in for JSON that was written outside this process: by agents, BMCs, tools, servers,
// archives, files, and by an older or damaged store. Nothing recursive is built before it is known
// to be shallow: copying, printing and comparing a JSON value call themselves once a level, and a
// hundred thousand levels are a signal.
//
// What is refused, whoever says it: more bytes, levels or values than the party may send, numbers
// beyond a double, anything behind the value. Integers beyond 64 bits are read as floating point.
// tools/lint refuses every other parse.
#pragma once

#include "base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string_view>

namespace muster {

enum class DuplicateKeys { Refused, LastWins };
enum class BrokenUtf8 { Refused, Replaced };

/// What a party may say. Levels count from 1 for the outermost array or object; a number alone has
/// none.
struct JsonLimits {
  std::string_view party;  ///< for the error: "the answer of a BMC"
  std::size_t bytes;
  std::size_t levels;
  std::size_t
      values;  ///< of all kinds, keys not counted; each takes some ten times its bytes in memory
  DuplicateKeys duplicates;
  BrokenUtf8 broken;
};

inline constexpr std::size_t kForeignJsonLevels = 64;
/// What we keep holds what others said, a few levels deeper; what we then read again must not be
/// refused.
inline constexpr std::size_t kKeptJsonLevels = 128;

// Two readers of a signed text, or of an order, must see the same value: no key twice there. BMCs
// and tools say keys twice, and say serial numbers in Latin-1; that must not make a machine
// invisible.
inline constexpr JsonLimits kAgentJson{"the message of an agent", 16u << 20,
                                       kForeignJsonLevels,        500'000,
                                       DuplicateKeys::Refused,    BrokenUtf8::Refused};
inline constexpr JsonLimits kOrderJson{
    "a task of the controller", 16u << 20,          kKeptJsonLevels, 500'000,
    DuplicateKeys::Refused,     BrokenUtf8::Refused};
inline constexpr JsonLimits kBmcJson{"the answer of a BMC",   16u << 20,
                                     kForeignJsonLevels,      500'000,
                                     DuplicateKeys::LastWins, BrokenUtf8::Replaced};
inline constexpr JsonLimits kToolJson{"the output of a tool",  64u << 20,
                                      kForeignJsonLevels,      1'000'000,
                                      DuplicateKeys::LastWins, BrokenUtf8::Replaced};
inline constexpr JsonLimits kIndexJson{"the index of an image", 256u << 20,
                                       kForeignJsonLevels,      5'000'000,
                                       DuplicateKeys::Refused,  BrokenUtf8::Refused};
inline constexpr JsonLimits kArchiveJson{"a manifest",           16u << 20,
                                         kForeignJsonLevels,     500'000,
                                         DuplicateKeys::Refused, BrokenUtf8::Refused};
inline constexpr JsonLimits kRequestJson{
    "a request",        16u << 20, kForeignJsonLevels, 500'000, DuplicateKeys::Refused,
    BrokenUtf8::Refused};
inline constexpr JsonLimits kServerJson{"the answer of a server", 64u << 20,
                                        kForeignJsonLevels,       2'000'000,
                                        DuplicateKeys::LastWins,  BrokenUtf8::Refused};
inline constexpr JsonLimits kFileJson{
    "a file", 256u << 20, kKeptJsonLevels, 10'000'000, DuplicateKeys::Refused, BrokenUtf8::Refused};
inline constexpr JsonLimits kKeptJson{
    "the state",         256u << 20, kKeptJsonLevels, 10'000'000, DuplicateKeys::LastWins,
    BrokenUtf8::Replaced};

/// Parses one JSON text.
/// Errors: Corrupt, which says what was refused and at which byte, and never quotes the text
Result<nlohmann::json> parseJson(std::string_view text, const JsonLimits& limits);

/// The same for who can do without: a value whose is_discarded() holds, and which is neither object
/// nor array nor anything else.
nlohmann::json jsonOrNone(std::string_view text, const JsonLimits& limits);

}  // namespace muster
