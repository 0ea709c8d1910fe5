// SPDX-License-Identifier: Apache-2.0
#include "agent/core/fitness.h"

#include "base/io/files.h"
#include "base/io/regular_file.h"
#include "base/printable.h"
#include "wire/fields.h"
#include "wire/health.h"
#include "wire/messages.h"

#include <fmt/format.h>

#include <time.h>

namespace muster::wire {
namespace {
using agent::Fitness;
using agent::FitnessState;
constexpr Words<FitnessState, 3> kStates = {{{FitnessState::Fit, "fit"},
                                             {FitnessState::Unfit, "unfit"},
                                             {FitnessState::Unknown, "unknown"}}};
}  // namespace

template <>
inline constexpr auto kFields<Fitness> =
    std::tuple(field("state", &Fitness::state, Word<FitnessState, 3>{&kStates, kMaxNameBytes}),
               field("reason", &Fitness::reason, Text{2 * kMaxSymptomTextBytes}).optional(),
               field("boot_id", &Fitness::boot_id, Text{kMaxNameBytes}),
               field("looked_at_ms", &Fitness::looked_at_ms, Whole{}));

}  // namespace muster::wire

namespace muster::agent {
namespace {

constexpr std::size_t kMaxFileBytes = 16u << 10, kMaxBootIdBytes = 4096;
constexpr mode_t kEverybodyReads = 0644;
constexpr std::uint64_t kMillisecondsOfSecond = 1000, kNanosecondsOfMillisecond = 1'000'000;
constexpr const char* kWhatToDo = "look at it with `systemctl status muster-agent`";

Fitness unknown(std::string why) { return {FitnessState::Unknown, std::move(why), {}, 0}; }

}  // namespace

std::string_view toString(FitnessState state) { return wire::wordOf(wire::kStates, state); }

std::uint64_t bootMilliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kMillisecondsOfSecond +
         static_cast<std::uint64_t>(now.tv_nsec) / kNanosecondsOfMillisecond;
}

Result<std::string> bootIdOf(const std::filesystem::path& root) {
  TRY(text, io::readFile(root / "proc/sys/kernel/random/boot_id", kMaxBootIdBytes));
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  return text;
}

Result<void> writeFitness(const std::filesystem::path& root, const Fitness& fitness) {
  const auto file = root / kFitnessFile;
  TRY_OK(io::makeDirs(file.parent_path()));
  return io::writeFileAtomic(file, wire::printMessage(fitness), kEverybodyReads);
}

Fitness readFitness(const std::filesystem::path& root, std::uint64_t now_ms) {
  const auto text = io::readRegularFile(root / kFitnessFile, kMaxFileBytes);
  if (!text)
    return unknown(fmt::format("muster's agent has not looked at this node since it was booted; {}",
                               kWhatToDo));
  auto read = wire::parseMessage<Fitness>(*text, kMaxFileBytes, "fitness", "fitness");
  if (!read)
    return unknown("what muster's agent has written cannot be read: " + read.error().str());
  read->reason = printable(read->reason);
  const auto boot = bootIdOf(root);
  if (!boot || *boot != read->boot_id)
    return unknown(fmt::format("muster's agent has last looked before this boot; {}", kWhatToDo));
  const auto age = now_ms - std::min(now_ms, read->looked_at_ms);
  const auto age_s = age / kMillisecondsOfSecond;
  if (age_s > static_cast<std::uint64_t>(kFitnessHolds.count()))
    return unknown(
        fmt::format("muster's agent is away: its last look is {} s ago; {}", age_s, kWhatToDo));
  return *read;
}

}  // namespace muster::agent
