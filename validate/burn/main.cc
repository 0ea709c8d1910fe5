// SPDX-License-Identifier: Apache-2.0
// muster-burn: the burn engine as a program. Exit: 0 passed, 1 not passed, 2 wrong words, 3 the
// tester cannot be trusted, 4 passed but the report could not be written.
#include "base/json_output.h"
#include "base/main_guard.h"
#include "validate/burn/backends.h"
#include "validate/burn/engine.h"
#include "validate/burn/self_test.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <fstream>
#include <iostream>
#include <limits>
#include <new>

namespace {

using namespace muster;
using namespace muster::burn;

enum Exit { kPassed = 0, kNotPassed = 1, kWrongWords = 2, kUntrusted = 3, kUnwritten = 4 };

constexpr const char* kProgram = "muster-burn";
constexpr int kMostN = 16'384;  ///< a format may allow less

struct Words {
  std::string backend = "cpu", json;
  std::vector<std::string> stages, dtypes, floors;
  double seconds = 10, hold_seconds = 0, hang_seconds = 120;
  int threads = 0;
  bool self_test = false, no_canary = false;
  Options options;
};

/// As CLI::Range, which lets `nan` through: no comparison with it is true.
CLI::Validator numberWithin(double least, double most) {
  return {[least, most](const std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
              return std::string();
            return fmt::format("expected a number from {} to {}, not {}", least, most, text);
          },
          fmt::format("FLOAT in [{} - {}]", least, most)};
}

/// CLI's own reading takes what is too large, or below zero, for another number.
CLI::Validator wholeNumber() {
  return {[](const std::string& text) {
            std::uint64_t value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            if (error == std::errc() && end == text.data() + text.size()) return std::string();
            return fmt::format("expected a whole number from 0 to {}, not {}",
                               std::numeric_limits<std::uint64_t>::max(), text);
          },
          "UINT"};
}

/// Of a whole number of tiles; 0: the device's own choice.
CLI::Validator sizeOfProducts() {
  return {[](const std::string& text) {
            int n = 0;
            if (CLI::detail::lexical_cast(text, n) && n > 0 && n <= kMostN && n % kTile == 0)
              return std::string();
            return fmt::format("expected a multiple of {} up to {}, not {}", kTile, kMostN, text);
          },
          fmt::format("INT, a multiple of {}", kTile)};
}

void declare(CLI::App& app, Words& words) {
  app.add_option("--backend", words.backend,
                 "cpu, cuda, hip, or gpu: cuda or hip, by who made the GPUs")
      ->capture_default_str();
  app.add_option("--stage", words.stages,
                 "gemm, memory, copy, units, caches, power; default: all but power")
      ->delimiter(',');
  app.add_option(
         "--dtype", words.dtypes,
         "number formats of products; default: all of the device but sparse ones, and mxfp8 on AMD")
      ->delimiter(',');
  app.add_option("--seconds", words.seconds, "of each stage")
      ->capture_default_str()
      ->check(numberWithin(0, 86400));
  app.add_option("--hold-seconds", words.hold_seconds,
                 "bit-fade: how long memory is left alone; 0: none")
      ->check(numberWithin(0, 3600));
  app.add_option("--hang-seconds", words.hang_seconds,
                 "a call into a device that takes longer ends the run, with the device's name")
      ->capture_default_str()
      ->check(numberWithin(1, 3600));
  app.add_option("--n", words.options.n, "size of products; default: where the device is fastest")
      ->check(sizeOfProducts());
  app.add_option("--memory-percent", words.options.memory_percent, "of the free memory")
      ->capture_default_str()
      ->check(CLI::Range(1, 95));
  app.add_option("--seed", words.options.seed, "repeats a run exactly")
      ->capture_default_str()
      ->check(wholeNumber());
  app.add_option("--min", words.floors, "VALUE=NUMBER: less, or no such value, is no pass")
      ->delimiter(',');
  app.add_option("--min-power-share", words.options.min_power_share,
                 "power: of the board's limit, as a mean over the stage")
      ->capture_default_str()
      ->check(numberWithin(0.01, 1));
  app.add_option("--require", words.options.sensors,
                 "sensors that must be there: watts, ecc, throttle")
      ->delimiter(',')
      ->check(CLI::IsMember({"watts", "ecc", "throttle"}));
  app.add_option("--threads", words.threads, "cpu: at most so many cores")
      ->check(CLI::Range(0, 4096));
  app.add_option("--json", words.json, "write the report to FILE; '-': standard output");
  app.add_flag("--no-canary", words.no_canary, "leave out the short self-test before the run");
  // It tests all that the device has: a word that it leaves aside would look as if it were heard.
  auto* self_test = app.add_flag("--self-test", words.self_test,
                                 "inject every kind of fault, each bit, and see that it is caught");
  for (const char* of_a_run :
       {"--stage", "--dtype", "--seconds", "--hold-seconds", "--n", "--seed", "--memory-percent",
        "--min", "--min-power-share", "--require", "--json", "--no-canary"})
    self_test->excludes(of_a_run);
}

std::optional<StageKind> kindOf(const std::string& name) {
  if (name == "gemm") return StageKind::Gemm;
  if (name == "memory") return StageKind::Memory;
  if (name == "copy") return StageKind::Copy;
  if (name == "units") return StageKind::Units;
  if (name == "caches") return StageKind::Caches;
  if (name == "power") return StageKind::Power;
  return std::nullopt;
}

/// Power is drawn by the format whose products draw most: the last of the narrow floats that the
/// device has.
Dtype hottest(const Device& device) {
  auto best = device.dtypes().front();
  for (const auto dtype : device.dtypes())
    if (dtype == Dtype::Bf16) best = dtype;
  return best;
}

Result<std::vector<Stage>> stagesOf(const Words& words, const Device& device) {
  const auto each = std::chrono::milliseconds(static_cast<long>(words.seconds * 1000));
  std::vector<Dtype> dtypes;
  for (const auto& name : words.dtypes) {
    TRY(dtype, parseDtype(name));
    dtypes.push_back(dtype);
  }
  std::vector<Stage> stages;
  for (const auto& name : words.stages)
    if (!kindOf(name))
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("there is no stage '{}'; there are gemm, memory, copy, units, caches, "
                      "power",
                      name));
  auto known = usualStages(device, each);
  const auto has = device.dtypes();
  for (const auto dtype : dtypes)  // by name only: their rate is information
    if (device.isByName(dtype) && std::find(has.begin(), has.end(), dtype) != has.end())
      for (auto& stage : productStages(dtype, each)) known.push_back(stage);
  for (const auto& stage : known) {
    const bool asked = words.stages.empty() ||
                       std::any_of(words.stages.begin(), words.stages.end(),
                                   [&](const auto& name) { return kindOf(name) == stage.kind; });
    const bool format = stage.kind != StageKind::Gemm || dtypes.empty() ||
                        std::find(dtypes.begin(), dtypes.end(), stage.dtype) != dtypes.end();
    if (asked && format) stages.push_back(stage);
  }
  if (std::find(words.stages.begin(), words.stages.end(), "power") != words.stages.end())
    stages.push_back({StageKind::Power, hottest(device), Operands::Random, each});
  for (const auto dtype : dtypes)
    if (std::none_of(stages.begin(), stages.end(),
                     [&](const auto& stage) { return stage.dtype == dtype; }))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("this device has no {}, or no stage uses it", rowOf(dtype).name));
  if (stages.empty()) return fail(ErrorCode::InvalidInput, "nothing is left to do");
  return stages;
}

Result<std::map<std::string, double>> floorsOf(const Words& words) {
  std::map<std::string, double> floors;
  for (const auto& text : words.floors) {
    const auto at = text.find('=');
    const auto name = text.substr(0, at);
    const char* const end = text.data() + text.size();
    double value = 0;
    const auto read = at == std::string::npos
                          ? std::from_chars_result{end, std::errc::invalid_argument}
                          : std::from_chars(text.data() + at + 1, end, value);
    if (name.empty() || read.ec != std::errc() || read.ptr != end || !(value > 0) ||
        !(value < 1e300))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("--min {}: expected VALUE=NUMBER with a number above zero (a comma "
                              "begins the next one)",
                              text));
    if (!floors.emplace(name, value).second)
      return fail(ErrorCode::InvalidInput, fmt::format("--min {}: given twice", name));
  }
  return floors;
}

int testSelf(Devices& devices, bool every_bit, bool tell, const Options& watch) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto result = selfTest(devices, i, every_bit, watch);
    if (tell) {
      for (const auto& row : result.rows)
        std::cout << fmt::format("{} {:<44} {}\n", row.caught ? "ok    " : "MISSED", row.fault,
                                 row.said);
      std::cout << fmt::format(
          "{}: {} of {} faults caught, {} flips below the rounding level of random data\n",
          devices[i]->identity().place,
          std::count_if(result.rows.begin(), result.rows.end(),
                        [](const auto& row) { return row.caught; }),
          result.rows.size(), result.below_rounding);
    }
    if (result.good()) continue;
    std::cerr
        << "muster-burn does not detect its own injected faults, so its results are not valid: "
        << result.missed() << "\n";
    return kUntrusted;
  }
  return kPassed;
}

bool writeReport(const std::string& file, const std::string& text) {
  if (file == "-") {
    std::cout << text << '\n';
    return true;  // main() tells whether all of it could be written
  }
  std::ofstream out(file);
  out << text << '\n';
  return static_cast<bool>(out.flush());
}

Result<void> tell(const Words& words, const Report& report) {
  if (!words.json.empty() && !writeReport(words.json, jsonText(toJson(report), 1)))
    return fail(ErrorCode::Unavailable, "cannot write " + words.json);
  if (words.json != "-") std::cout << toText(report);
  return {};
}

/// Only what a handler may call. It then ends as the signal ends a program, so that a shell and an
/// agent see which one it was (128 + its number).
void endBySignal(int signal) {
  constexpr std::string_view kLine =
      "muster-burn: ended by a signal before its end: nothing was evaluated, and there is no "
      "report\n";
  (void)!::write(STDERR_FILENO, kLine.data(), kLine.size());
  (void)::raise(signal);  // its action is the usual one again
}

/// One that was ignored at the start (nohup) stays so.
void tellOfSignals() {
  struct sigaction tell{}, before{};
  tell.sa_handler = endBySignal;
  tell.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      (void)::sigaction(signal, &tell, nullptr);
}

Result<int> run(Words& words) {
  std::error_code error;
  TRY(devices, openDevices(words.backend, words.threads,
                           std::filesystem::read_symlink("/proc/self/exe", error).parent_path()));
  words.options.hang_limit =
      std::chrono::milliseconds(static_cast<long>(words.hang_seconds * 1000));
  words.options.on_hang = [&words](const Report& report) {
    (void)tell(words, report);
    (void)codeOnceWritten(kProgram, kNotPassed, std::cout, STDOUT_FILENO);
    ::_exit(kNotPassed);  // the call that hangs never ends, and neither would its thread
  };
  tellOfSignals();
  if (words.self_test) return testSelf(devices, true, true, words.options);
  TRY(stages, stagesOf(words, *devices.front()));
  TRY(floors, floorsOf(words));
  words.options.stages = stages;
  words.options.floors = floors;
  words.options.hold = std::chrono::milliseconds(static_cast<long>(words.hold_seconds * 1000));
  if (!words.no_canary)
    if (const int code = testSelf(devices, false, false, words.options); code != kPassed)
      return code;
  const auto report = burn::burn(devices, words.options);
  const int code = report.outcome() == Outcome::Pass ? kPassed : kNotPassed;
  const auto told = tell(words, report);
  if (told) return code;
  std::cerr << "muster-burn: " << told.error().str() << "\n";
  return code == kPassed ? kUnwritten : code;
}

int work(int argc, char** argv) {
  CLI::App app{"Loads processors, GPUs and memory, and checks every result exactly"};
  Words words;
  declare(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return app.exit(wrong) == 0 ? kPassed : kWrongWords;
  }
  if (wasClosedAtStart(STDOUT_FILENO)) {
    std::cerr << "muster-burn: standard output is closed, and the report is written there: nothing "
                 "was tested. Lead it to a file, or to /dev/null\n";
    return kUnwritten;
  }
  try {
    const auto code = run(words);
    if (code) return *code;
    std::cerr << "muster-burn: " << code.error().str() << "\n";
    return code.error().code() == ErrorCode::InvalidInput ? kWrongWords : kNotPassed;
  } catch (const std::bad_alloc&) {
    std::cerr << "muster-burn: not enough memory\n";
  } catch (const std::exception& broken) {
    std::cerr << "muster-burn: " << broken.what() << "\n";
  }
  return kNotPassed;
}

}  // namespace

int main(int argc, char** argv) {
  const int code = guardedMain(kProgram, [&] { return work(argc, argv); });
  // Without the ends of libraries: a thread of OpenBLAS that finds no memory asks for ever, and its
  // end waits for it.
  ::_exit(codeOnceWritten(kProgram, code, std::cout, STDOUT_FILENO, kUnwritten));
}
