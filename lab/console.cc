// The terminal on one side, a node's serial line on the other.
#include "base/io/files.h"
#include "lab/rack.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>
#include <cstring>

namespace muster::lab {

namespace {

constexpr char kLeave = 0x1d;  // Ctrl-]
constexpr std::size_t kPieceBytes = 4096;

/// Raw mode for as long as it lives; nothing when stdin is no terminal.
class RawTerminal {
 public:
  RawTerminal() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    changed_ = true;
    auto raw = before_;
    ::cfmakeraw(&raw);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~RawTerminal() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

bool writeAll(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    auto written = ::write(fd, data, size);
    if (written <= 0) return false;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

Result<io::Fd> dial(const std::filesystem::path& socket_file) {
  io::Fd line(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_file.c_str(), sizeof address.sun_path - 1);
  if (::connect(line.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return line;
  return fail(ErrorCode::Unavailable,
              fmt::format("no serial line at {}: the node is off, or another console is attached", socket_file.string()));
}

}  // namespace

Result<void> attachConsole(const LabHandle& lab, const std::string& node) {
  TRY(line, dial(Paths{lab.folder, {}}.console() / (node + ".sock")));
  RawTerminal raw;
  char piece[kPieceBytes];
  pollfd ends[] = {{STDIN_FILENO, POLLIN, 0}, {line.get(), POLLIN, 0}};
  while (::poll(ends, 2, -1) > 0) {
    if (ends[0].revents) {
      auto count = ::read(STDIN_FILENO, piece, sizeof piece);
      if (count <= 0 || std::memchr(piece, kLeave, static_cast<std::size_t>(count))) return {};
      if (!writeAll(line.get(), piece, static_cast<std::size_t>(count))) return {};
    }
    if (ends[1].revents) {
      auto count = ::read(line.get(), piece, sizeof piece);
      if (count <= 0 || !writeAll(STDOUT_FILENO, piece, static_cast<std::size_t>(count))) return {};
    }
  }
  return {};
}

}  // namespace muster::lab
