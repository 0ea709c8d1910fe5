// What the system's answers mean. Pure, but for clockState.
#pragma once

#include "validate/checks/catalogue.h"

namespace muster::validate {

struct ClockState {
  bool synchronised = false;
  double error_ms = 0;    ///< the kernel's own bound
};
/// Source: adjtimex(2), which every time service steers
Result<ClockState> clockState();
Verdict judgeClock(const ClockState& seen, double most_error_ms);

/// Lines of the kernel's log that tell of hardware, each with its meaning. Bounded.
std::vector<std::string> troublesIn(std::string_view log);
/// XIDs that ask for more than a restart of the job.
std::vector<std::string> xidsIn(std::string_view log);

/// Settings: what the machine has of the table against defaults or `wanted` {name: value}. A name that is wanted and not there is no data.
Verdict judgeKnobs(const nlohmann::json& wanted, const Host& host);

/// MB/s of `fio --output-format=json`. Errors: Corrupt when a job has failed, or the rate is no finite number above zero
Result<double> parseFioRead(std::string_view json);
/// Those of one model that read at less than 0.8 of its median; three disks and more.
std::vector<std::string> slowerThanTheirLike(const std::map<std::string, double>& rates);

}  // namespace muster::validate
