// SPDX-License-Identifier: Apache-2.0
#include "base/main_guard.h"

#include "base/printable.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

namespace muster {

int tellBroken(std::string_view program) {
  std::string what = "an exception without words";
  try {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  std::cerr << printable(fmt::format("{}: internal error: {}. What was committed stays; the same "
                                     "command goes on from there",
                                     program, what))
            << std::endl;
  return kBrokenExit;
}

namespace {

std::array<bool, STDERR_FILENO + 1> closed_at_start{};

}  // namespace

void fillStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      closed_at_start[static_cast<std::size_t>(fd)] = true;
      (void)::open("/dev/null", O_RDWR);  // takes the lowest number that is free: this one
    }
}

bool wasClosedAtStart(int fd) { return closed_at_start.at(static_cast<std::size_t>(fd)); }

RefusedOutput::RefusedOutput() {
  fillStandardStreams();
  if (wasClosedAtStart(STDOUT_FILENO)) before_ = std::cout.rdbuf(this);
}

RefusedOutput::~RefusedOutput() {
  if (before_) std::cout.rdbuf(before_);
}

int codeOnceWritten(std::string_view program, int code, std::ostream& out, int fd, int unwritten) {
  errno = 0;
  out.flush();
  const int error = errno;  // 0: an earlier write has failed
  if (!out.fail()) return code;
  pollfd reader{.fd = fd, .events = POLLOUT, .revents = 0};
  const bool is_closed_pipe = ::poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR) != 0;
  if (error == EPIPE || is_closed_pipe) return code;
  std::cerr << fmt::format("{}: not all of the output could be written{}{}\n", program,
                           error != 0 ? ": " : "", error != 0 ? std::strerror(error) : "")
            << std::flush;
  return code == 0 ? unwritten : code;
}

}  // namespace muster
