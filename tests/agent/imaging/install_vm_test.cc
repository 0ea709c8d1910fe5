// SPDX-License-Identifier: Apache-2.0
// The proof: a blank virtual disk is written from the RAM OS, then started by SeaBIOS, by OVMF, and
// by OVMF with Secure Boot. Some minutes under TCG, so it runs on request only; the lab's test
// does the same with the real agent.
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/images.h"
#include "provision/images/agent_initrd.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <boost/asio/executor_work_guard.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <iostream>
#include <thread>

namespace muster {
namespace {

constexpr std::chrono::seconds kWriteLimit{600}, kBootLimit{300};
constexpr const char* kRuns = "installed system: the agent runs, started by systemd";
constexpr const char* kMac = "52:54:00:00:00:01";

std::filesystem::path cacheFolder() {
  if (const char* cache = std::getenv("MUSTER_CACHE")) return cache;
  return std::filesystem::path(std::getenv("HOME")) / ".cache/muster";
}

Task<io::ServerResponse> answerText(std::string text) {
  co_return io::ServerResponse::json(200, text);
}

class VmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("MUSTER_VM_TESTS") == nullptr || ::geteuid() != 0)
      GTEST_SKIP() << "takes minutes: set MUSTER_VM_TESTS=1, as root";
  }

  /// Starts QEMU and waits until the console says `text` (or QEMU ends). Answers the seconds that
  /// it took.
  std::optional<double> boot(const std::string& name, std::vector<std::string> args,
                             const std::string& text, std::chrono::seconds limit) {
    auto runner = io::makeProcessRunner();
    const auto console = folder_ / (name + ".console");
    io::Command command{
        .program = "qemu-system-x86_64",
        .args = {"-machine",
                 "q35,accel=tcg",
                 "-cpu",
                 "max",
                 "-m",
                 "2048",
                 "-display",
                 "none",
                 "-monitor",
                 "none",
                 "-no-reboot",
                 "-serial",
                 "file:" + console.string(),
                 "-netdev",
                 "user,id=n",
                 "-device",
                 std::string("virtio-net-pci,netdev=n,mac=") + kMac,
                 "-drive",
                 "if=none,id=d,format=raw,cache=unsafe,file=" + (folder_ / "disk").string(),
                 "-device",
                 "virtio-blk-pci,drive=d,serial=DISK1"}};
    command.args.insert(command.args.end(), args.begin(), args.end());
    const auto start = std::chrono::steady_clock::now();
    auto child = runner->start(command, folder_ / (name + ".log"));
    EXPECT_TRUE(child);
    std::optional<double> seconds;
    // The console is a file: looking at it from time to time is all there is.
    while (std::chrono::steady_clock::now() - start < limit) {
      const bool alive = (*child)->running();
      if (io::readFile(console).value_or("").find(text) != std::string::npos) {
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        break;
      }
      if (!alive) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    (*child)->terminate(std::chrono::seconds(5));
    if (!seconds)
      ADD_FAILURE() << name << ": no \"" << text << "\" on the console:\n"
                    << io::readFile(console).value_or("");
    else
      std::cout << fmt::format("{}: \"{}\" after {:.1f} s", name, text, *seconds) << std::endl;
    return seconds;
  }

  test::TempFolder folder_;
};

TEST_F(VmTest, aDiskWrittenInTheRamOsStartsByBiosByUefiAndBySecureBoot) {
  const auto notify = [](std::string_view text) { std::cout << text << std::endl; };
  const auto key = *io::SigningKey::generate();
  auto store =
      provision::openImageStore({cacheFolder(), test::binFolder() / "write_image_tool", key});
  const auto ramos = store->buildRamOs(Architecture::Amd64, notify);
  ASSERT_TRUE(ramos) << ramos.error().str();
  const auto image =
      store->build({"bookworm-gpu",
                    inventory::ImageBuild{"bookworm", {"linux-image-amd64", "slurmd", "munge"}, ""},
                    {}},
                   notify);
  ASSERT_TRUE(image) << image.error().str();

  asio::io_context control;
  auto server = io::startHttpServer(control.get_executor(), {});
  ASSERT_TRUE(server) << server.error().str();
  const std::string base = "http://10.0.2.2:" + std::to_string((*server)->port());
  const nlohmann::json task{{"index_url", base + "/images/" + image->digest + "/index.json"},
                            {"pack_url", base + "/images/" + image->digest + "/pack"},
                            {"digest", image->digest},
                            {"signing_public_pem", key.public_pem},
                            {"disk", "serial:DISK1"},
                            {"hostname", "gpu001"},
                            {"boot", "uefi"},
                            {"secure_boot", true},
                            {"agent", {{"url", "https://10.0.2.2:1"}, {"ca_pem", "CA"}}}};
  (*server)->addRoutes(store->routes());
  (*server)->addRoutes(
      {{"GET", "/task", [text = task.dump()](io::ServerRequest) { return answerText(text); }}});
  const auto guard = asio::make_work_guard(control);
  std::jthread serving([&control] { control.run(); });

  ASSERT_TRUE(io::writeFileAtomic(folder_ / "disk", ""));
  std::filesystem::resize_file(folder_ / "disk", 4ull << 30);
  const auto initrds = folder_ / "initrd.img";
  ASSERT_TRUE(
      io::runChecked({.program = "sh",
                      .args = {"-c", "cat \"$1\" \"$2\" > \"$3\"", "sh", ramos->initrd.string(),
                               ramos->agent_initrd.string(), initrds.string()}}));
  const bool written =
      boot("write",
           {"-kernel", ramos->kernel.string(), "-initrd", initrds.string(), "-append",
            fmt::format("console=ttyS0 muster.mac={} muster.node=gpu001 muster.test={}/task", kMac,
                        base)},
           "writer: done", kWriteLimit)
          .has_value();
  std::cout << io::runBlocking({.program = "grep",
                                .args = {"-a", "-e", "muster:", "-e",
                                         "writer:", (folder_ / "write.console").string()}})
                   ->out
            << std::endl;
  control.stop();
  std::filesystem::remove(image->index);
  ASSERT_TRUE(written);

  std::filesystem::copy_file("/usr/share/OVMF/OVMF_VARS_4M.ms.fd", folder_ / "secure.vars.fd");
  boot("secure",
       {"-machine", "q35,accel=tcg,smm=on", "-global",
        "driver=cfi.pflash01,property=secure,value=on", "-drive",
        "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "-drive",
        "if=pflash,format=raw,file=" + (folder_ / "secure.vars.fd").string()},
       kRuns, kBootLimit);
  boot("bios", {}, kRuns, kBootLimit);
  std::filesystem::copy_file("/usr/share/OVMF/OVMF_VARS_4M.fd", folder_ / "vars.fd");
  boot("uefi",
       {"-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd", "-drive",
        "if=pflash,format=raw,file=" + (folder_ / "vars.fd").string()},
       kRuns, kBootLimit);
}

}  // namespace
}  // namespace muster
