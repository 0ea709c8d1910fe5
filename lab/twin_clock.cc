// SPDX-License-Identifier: Apache-2.0
#include "lab/twin_clock.h"

#include "base/io/files.h"
#include "lab/slowness.h"

namespace muster::lab {
namespace {

constexpr std::chrono::seconds kMeasureEvery{15};

std::filesystem::path fileIn(const std::filesystem::path& lab_folder) {
  return lab_folder / "slowness.json";
}

/// A folder that is gone is not made again: the rack went down meanwhile. Then only this process
/// knows.
void measureOnce(SlownessRecord& record, const std::filesystem::path& file) {
  const double measured = slowness(std::thread::hardware_concurrency());
  record.add(SystemClock().now(), measured);
  if (const auto kept = io::readFile(file)) record.merge(SlownessRecord::fromJson(*kept));
  std::error_code ignored;
  if (std::filesystem::exists(file.parent_path(), ignored))
    (void)io::writeFileAtomic(file, record.toJson());
}

}  // namespace

TwinClock::TwinClock(const std::filesystem::path& lab_folder) : file_(fileIn(lab_folder)) {
  measure();
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::unique_lock lock(mutex_);
      if (ends_.wait_for(lock, stop, kMeasureEvery, [&stop] { return stop.stop_requested(); }))
        return;
      lock.unlock();
      measure();
    }
  });
}

TwinClock::~TwinClock() = default;

void TwinClock::measure() {
  measureOnce(record_, file_);
  factor_ = record_.factor(clock_.now());
}

double measureInto(const std::filesystem::path& lab_folder) {
  SlownessRecord record;
  measureOnce(record, fileIn(lab_folder));
  return record.factor(SystemClock().now());
}

}  // namespace muster::lab
