// SPDX-License-Identifier: Apache-2.0
#include "fabric/rehearsal/simulator.h"

#include "base/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace muster::fabric {

namespace {

constexpr std::chrono::seconds kStartLimit{30}, kCommandLimit{10};
constexpr std::chrono::milliseconds kLookEvery{3};
constexpr std::string_view kPrompt = "sim> ";
constexpr std::size_t kTailBytes = 400;
constexpr std::size_t kPieceBytes = 1u << 16;
constexpr std::size_t kMostAtOnce = 2048;  // of a fifo's write that cannot be cut (PIPE_BUF)
constexpr int kSparePorts = 4096, kSpareNodes = 64;

std::size_t count(std::string_view text, std::string_view words) {
  std::size_t times = 0;
  for (auto at = text.find(words); at != std::string_view::npos;
       at = text.find(words, at + words.size()))
    ++times;
  return times;
}

/// Unique among the simulators of this machine.
std::string socketName() {
  static std::atomic<int> number{0};
  return fmt::format("muster-{}-{}", ::getpid(), ++number);
}

}  // namespace

Async<std::unique_ptr<Simulator>> Simulator::start(const Topology& topology,
                                                   io::ProcessRunner& processes, Clock& clock,
                                                   std::filesystem::path folder) {
  CO_TRY_OK(io::makeDirs(folder));
  std::unique_ptr<Simulator> out(
      new Simulator(clock, std::filesystem::absolute(folder), socketName()));
  auto net = out->folder_ / "declared.net", console = out->folder_ / "console";
  CO_TRY_OK(io::writeFileAtomic(net, toIbsimNet(topology)));
  std::error_code ignored;
  for (const auto& old : {console, out->log()}) std::filesystem::remove(old, ignored);
  if (::mkfifo(console.c_str(), 0600) != 0)
    co_return fail(ErrorCode::Internal, fmt::format("cannot make {}", console.string()));
  int ports = kSparePorts;
  for (const auto& [name, device] : topology.devices) ports += device.ports + 1;
  io::Command command;
  command.program =
      "sh";  // holds the console open in both directions, so that ibsim never reads its end
  command.args = {"-c",
                  "exec ibsim -s -N \"$1\" -S \"$1\" -P \"$2\" -L 49151 \"$3\" <>\"$4\"",
                  "ibsim",
                  std::to_string(topology.devices.size() + kSpareNodes),
                  std::to_string(ports),
                  net.string(),
                  console.string()};
  command.env["IBSIM_SOCKNAME"] = out->socket_;
  command.working_dir = out->folder_;
  CO_TRY(process, processes.start(std::move(command), out->log()));
  out->process_ = std::move(process);
  CO_TRY_OK(co_await out->untilPrompts(1, "start"));
  co_return std::move(out);
}

/// The log grows by a line for each packet that finds no way: it is read once.
std::size_t Simulator::prompts() {
  io::Fd fd(::open(log().c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, kPieceBytes> piece;
  for (ssize_t got; fd.valid() && (got = ::pread(fd.get(), piece.data(), piece.size(),
                                                 static_cast<off_t>(log_read_))) > 0;) {
    const std::string_view text(piece.data(), static_cast<std::size_t>(got));
    prompts_ += count(text, kPrompt);
    // A prompt may be cut in two: its beginning is read again.
    std::size_t cut = std::min(text.size(), kPrompt.size() - 1);
    while (cut > 0 && !kPrompt.starts_with(text.substr(text.size() - cut))) --cut;
    if (text.size() == cut) break;
    log_read_ += text.size() - cut;
  }
  return prompts_;
}

Async<void> Simulator::untilPrompts(std::size_t wanted, std::string what) {
  const auto until = clock_.steady() + (wanted > 1 ? kCommandLimit : kStartLimit);
  while (prompts() < wanted) {
    if (!process_->running() || clock_.steady() > until) {
      auto text = io::readFile(log()).value_or("");
      co_return fail(ErrorCode::Unavailable,
                     fmt::format("ibsim did not {}: {}", what,
                                 text.substr(text.size() - std::min(text.size(), kTailBytes))));
    }
    co_await clock_.sleep(kLookEvery);
  }
  co_return Result<void>();
}

Async<void> Simulator::say(std::string lines) {
  if (lines.empty()) co_return Result<void>();
  if (lines.back() != '\n') lines += '\n';
  io::Fd fifo(::open((folder_ / "console").c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  for (std::size_t from = 0; from < lines.size();) {
    auto to = lines.size() - from <= kMostAtOnce ? lines.size()
                                                 : lines.rfind('\n', from + kMostAtOnce - 1) + 1;
    const auto text = std::string_view(lines).substr(from, to - from);
    const auto wanted = prompts() + count(text, "\n");
    if (::write(fifo.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      co_return fail(ErrorCode::Unavailable, "ibsim does not read its console");
    CO_TRY_OK(co_await untilPrompts(wanted, std::string(text.substr(0, text.find('\n')))));
    from = to;
  }
  co_return Result<void>();
}

std::string Simulator::linesOf(const std::vector<Repair>& repairs) {
  std::string out;
  for (bool in : {false, true})
    for (const auto& repair : repairs)
      for (const auto& move : repair.moves)
        if (move.kind != (in ? Move::Kind::Pull : Move::Kind::Plug))
          out += in ? linkLine(move.other, move.to) : unlinkLine(move.from);
  return out;
}

FabricOptions Simulator::seat(std::string_view device) const {
  auto id = ibsimNodeId(device);
  FabricOptions out;
  out.run_folder = folder_ / ("run-" + id);
  out.tool_prefix = {"ibsim-run"};
  out.tool_env = {{"IBSIM_SOCKNAME", socket_}, {"SIM_HOST", id}};
  return out;
}

bool slowDownForIbsim(Topology& topology) {
  bool any = false;
  for (auto& link : topology.links)
    for (auto fast : {"NDR", "XDR"})
      if (auto at = link.width_speed.find(fast); at != std::string::npos) {
        link.width_speed.replace(at, 3, "HDR");
        any = true;
      }
  return any;
}

}  // namespace muster::fabric
