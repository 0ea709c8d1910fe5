// SPDX-License-Identifier: Apache-2.0
// The console recorder against a real machine: QEMU's serial port on a Unix socket and on a
// terminal device.
#include "base/io/files.h"
#include "bmc/console/boot_log.h"
#include "bmc/console/console_recorder.h"
#include "bmc/console/shared.h"
#include "tests/bmc/console/node.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class QemuConsoleTest : public testing::Test {
 protected:
  /// Without a disk the firmware gives up; `endlessly`: it starts anew a tenth of a second later.
  void boot(const std::string& serial, bool endlessly = false) {
    std::vector<std::string> args = {"-machine", "q35,accel=tcg,graphics=off",
                                     "-m",       "64",
                                     "-display", "none",
                                     "-nic",     "none",
                                     "-serial",  serial};
    if (endlessly)
      args.insert(args.end(), {"-boot", "reboot-timeout=100"});
    else
      args.emplace_back("-no-reboot");
    auto started = processes->start({"qemu-system-x86_64", args}, folder / "qemu.log");
    ASSERT_TRUE(started) << started.error().str();
    machine = std::move(*started);
  }
  Async<void> untilSaid(Consoles& recorder, std::string what) {
    while (true) {
      for (const auto& line : recorder.lastLines(kNode))
        if (line.find(what) != std::string::npos) co_return Result<void>();
      co_await clock.waitFor(20ms);
    }
  }
  Async<void> begin(Consoles& recorder) {
    co_await recorder.bootBegins(kNode, "power on");
    co_return Result<void>();
  }

  test::TempFolder folder;
  std::unique_ptr<io::ProcessRunner> processes = io::makeProcessRunner();
  std::unique_ptr<io::Child> machine;
  asio::io_context io;
  SystemClock clock;
  Workers workers{1};
};

TEST_F(QemuConsoleTest, whatTheFirmwareSaysIsKeptAlsoWhenTheLineComesLater) {
  const auto socket = (folder / "serial.sock").string();
  auto recorder = makeConsoles(
      [&](const NodeName& node) {
        return shareConsole(makeSocketConsole(socket), folder / "run", node);
      },
      folder / "kept", clock, workers);
  ASSERT_TRUE(
      test::runAsync(io, begin(*recorder)));  // before there is a machine, as when its power is off
  boot("unix:" + socket + ",server=on,wait=on");
  ASSERT_TRUE(test::runAsync(io, untilSaid(*recorder, "SeaBIOS (version"), 60s));
  ASSERT_TRUE(test::runAsync(io, recorder->close()));  // and with it what a worker still writes
  EXPECT_THAT(*BootLogArchive(folder / "kept", kNode).read(1), HasSubstr("SeaBIOS"));
}

TEST_F(QemuConsoleTest, ATerminalDeviceIsReadToo) {
  boot("pty", true);  // QEMU drops what a terminal says while nobody has opened it
  const auto log = folder / "qemu.log";
  std::string device;
  ASSERT_TRUE(test::runAsync(
      io,
      [](Clock& clock, std::filesystem::path log, std::string& device) -> Async<void> {
        while (true) {  // "char device redirected to /dev/pts/5 (label serial0)"
          const auto said = io::readFile(log).value_or("");
          if (const auto at = said.find("/dev/pts/");
              at != std::string::npos && said.find(' ', at) != std::string::npos) {
            device = said.substr(at, said.find(' ', at) - at);
            co_return Result<void>();
          }
          co_await clock.waitFor(10ms);
        }
      }(clock, log, device),
      60s));
  auto recorder = makeConsoles([&](const NodeName&) { return makeSocketConsole(device); },
                               folder / "kept", clock, workers);
  ASSERT_TRUE(test::runAsync(io, begin(*recorder)));
  ASSERT_TRUE(test::runAsync(io, untilSaid(*recorder, "SeaBIOS"), 60s));
  ASSERT_TRUE(test::runAsync(io, recorder->close()));
}

}  // namespace
}  // namespace muster::bmc
