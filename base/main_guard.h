// SPDX-License-Identifier: Apache-2.0
// The last catch of a program: what nobody expected is told in one line and is an exit code, not an
// abort.
#pragma once

#include <iosfwd>
#include <streambuf>
#include <string_view>

namespace muster {

inline constexpr int kBrokenExit =
    70;  ///< EX_SOFTWARE of sysexits(3): the program itself is at fault

/// Tells the exception that is being handled on standard error; answers kBrokenExit. Only inside a
/// catch.
int tellBroken(std::string_view program);

/// Standard input, output and error lead to /dev/null where who started the program has closed
/// them: a file that is opened would take their place otherwise, and be written into.
void fillStandardStreams();
/// Whether fillStandardStreams found this one of the three closed.
bool wasClosedAtStart(int fd);

/// While it lives, standard output refuses what is written where it was closed at the start: it
/// leads to /dev/null then, which takes everything, and codeOnceWritten has to hear that it is
/// lost. A program that writes nothing has lost nothing. Calls fillStandardStreams.
class RefusedOutput final : public std::streambuf {
 public:
  RefusedOutput();
  ~RefusedOutput() override;
  RefusedOutput(const RefusedOutput&) = delete;
  RefusedOutput& operator=(const RefusedOutput&) = delete;

 private:
  std::streambuf* before_ = nullptr;  ///< overflow() of the base refuses every byte
};

/// Runs the program's work; answers its exit code, or kBrokenExit when an exception came out.
template <class Work>
int guardedMain(std::string_view program, Work&& work) {
  fillStandardStreams();
  try {
    return work();
  } catch (...) {
    return tellBroken(program);
  }
}

/// The exit code once `out`, which writes to the descriptor, is flushed: 0 becomes `unwritten`,
/// with a message on standard error, when not everything could be written (a full disk). A reader
/// that has closed its pipe wants no more; that is no failure.
int codeOnceWritten(std::string_view program, int code, std::ostream& out, int fd,
                    int unwritten = 1);

}  // namespace muster
