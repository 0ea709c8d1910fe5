#include "validate/checks/host_memory.h"

#include <fmt/format.h>

#include <array>

namespace muster::validate {
namespace {

using Words = std::span<std::uint64_t>;

std::uint64_t mix(std::uint64_t value) {  // splitmix64's finaliser
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// A pattern is a pure function of (index, seed), so that what must be there is always known.
struct Pattern {
  const char* name;
  std::uint64_t (*word)(std::uint64_t index, std::uint64_t seed);
};

constexpr std::array kPatterns{
    Pattern{"zeros", [](std::uint64_t, std::uint64_t) -> std::uint64_t { return 0; }},
    Pattern{"ones", [](std::uint64_t, std::uint64_t) -> std::uint64_t { return ~0ULL; }},
    Pattern{"checkerboard", [](std::uint64_t i, std::uint64_t) -> std::uint64_t { return i & 1 ? 0xaaaaaaaaaaaaaaaaULL : 0x5555555555555555ULL; }},
    Pattern{"inverse checkerboard", [](std::uint64_t i, std::uint64_t) -> std::uint64_t { return i & 1 ? 0x5555555555555555ULL : 0xaaaaaaaaaaaaaaaaULL; }},
    Pattern{"own address", [](std::uint64_t i, std::uint64_t) -> std::uint64_t { return i; }},
    Pattern{"inverse address", [](std::uint64_t i, std::uint64_t) -> std::uint64_t { return ~i; }},
    Pattern{"walking one", [](std::uint64_t i, std::uint64_t) -> std::uint64_t { return 1ULL << (i % 64); }},
    Pattern{"random", [](std::uint64_t i, std::uint64_t seed) -> std::uint64_t { return mix(i + seed); }},
    Pattern{"inverse random", [](std::uint64_t i, std::uint64_t seed) -> std::uint64_t { return ~mix(i + seed); }},
};

void check(const Pattern& pattern, Words words, std::uint64_t seed, MemoryReport& report) {
  for (std::uint64_t index = words.size(); index-- > 0;) {  // downwards: the write went up
    const auto expected = pattern.word(index, seed);
    const auto seen = *const_cast<const volatile std::uint64_t*>(&words[index]);
    if (seen == expected) continue;
    if (report.wrong_words++ == 0)
      report.first_error = fmt::format("pattern '{}' at byte {}: expected {:#018x} saw {:#018x}", pattern.name, index * 8, expected, seen);
  }
}

}  // namespace

MemoryReport runMemoryPatterns(Words words, std::uint64_t seed, std::chrono::milliseconds limit, void (*disturb)(Words)) {
  MemoryReport report;
  report.patterns = static_cast<int>(kPatterns.size());
  const auto start = std::chrono::steady_clock::now();
  for (const auto& pattern : kPatterns) {
    for (std::uint64_t index = 0; index < words.size(); ++index)
      *const_cast<volatile std::uint64_t*>(&words[index]) = pattern.word(index, seed);
    if (disturb) disturb(words);
    check(pattern, words, seed, report);
    report.bytes_written += words.size_bytes();
    ++report.passes;
    if (std::chrono::steady_clock::now() - start >= limit) break;
  }
  return report;
}

}  // namespace muster::validate
