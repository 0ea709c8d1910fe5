// SPDX-License-Identifier: Apache-2.0
// Drives one target of the table by libFuzzer. MUSTER_FUZZ_TARGET names it. The words of the format
// become libFuzzer's dictionary: TARGET.dict in the working folder.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "base/log.h"
#include "tests/fuzz/targets.h"

namespace {

const muster::fuzz::Target* chosen = nullptr;

/// A word in the syntax of a dictionary: quoted, everything odd as \xNN.
std::string quoted(std::string_view word) {
  std::string out = "\"";
  for (const char c : word) {
    const bool odd = c < 0x20 || c > 0x7e || c == '"' || c == '\\';
    out += odd ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out + "\"";
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  muster::startLog({}, muster::LogLevel::Error);
  const char* name = std::getenv("MUSTER_FUZZ_TARGET");
  chosen = name ? muster::fuzz::findTarget(name) : nullptr;
  if (chosen) {
    const auto file = std::string(chosen->name) + ".dict";
    std::ofstream out(file);
    for (const auto word : chosen->words) out << quoted(word) << "\n";
    static std::string option = "-dict=" + file;
    static std::vector<char*> all(*arguments, *arguments + *count);
    all.insert(all.begin() + 1, option.data());
    all.push_back(nullptr);
    *count += 1;
    *arguments = all.data();
    return 0;
  }
  std::fprintf(stderr, "MUSTER_FUZZ_TARGET is one of:");
  for (const auto& target : muster::fuzz::allTargets())
    std::fprintf(stderr, " %s", std::string(target.name).c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > chosen->max_input_bytes) return -1;
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
