// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

std::string_view toString(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidInput:
      return "invalid input";
    case ErrorCode::NotFound:
      return "not found";
    case ErrorCode::Conflict:
      return "conflict";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::Timeout:
      return "timeout";
    case ErrorCode::Denied:
      return "denied";
    case ErrorCode::Corrupt:
      return "corrupt";
    case ErrorCode::Internal:
      return "internal";
  }
  return "internal";
}

std::string SourceRef::str() const {
  if (line == 0) return file;
  if (column == 0) return fmt::format("{}:{}", file, line);
  return fmt::format("{}:{}:{}", file, line, column);
}

Error::Error(ErrorCode code, std::string text)
    : code_(code),
      text_(std::move(text)),
      retryable_(code == ErrorCode::Unavailable || code == ErrorCode::Timeout) {}

Error& Error::within(std::string context) & {
  context_.push_back(std::move(context));
  return *this;
}

Error Error::within(std::string context) && {
  context_.push_back(std::move(context));
  return std::move(*this);
}

Error Error::at(SourceRef where) && {
  where_ = std::move(where);
  return std::move(*this);
}

Error Error::retryable(bool can) && {
  retryable_ = can;
  return std::move(*this);
}

Error Error::because(ErrorReason reason) && {
  if (!has(reason)) reasons_.push_back(reason);
  return std::move(*this);
}

bool Error::has(ErrorReason reason) const {
  return std::find(reasons_.begin(), reasons_.end(), reason) != reasons_.end();
}

std::string Error::str() const {
  std::string out = where_ ? where_->str() + ": " : std::string();
  for (auto it = context_.rbegin(); it != context_.rend(); ++it) out += *it + ": ";
  return out + text_;
}

std::unexpected<Error> fail(ErrorCode code, std::string text) {
  return std::unexpected(Error(code, std::move(text)));
}
std::unexpected<Error> fail(Error error) { return std::unexpected(std::move(error)); }

}  // namespace muster
