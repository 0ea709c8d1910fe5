// SPDX-License-Identifier: Apache-2.0
// Result and Error: how every fallible function in muster answers.
//
// An Error carries what an operator needs: a code, a sentence, the context that each layer added on
// the way up, whether a retry can help, and the place in the input when input caused it. What code
// decides by is the code and the reasons (values of an enum); the sentence is for people, and
// rewording it changes nothing. Exceptions stop at the seam that wraps a throwing library.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <expected>

namespace muster {

enum class ErrorCode {
  InvalidInput,
  NotFound,
  Conflict,
  Unavailable,
  Timeout,
  Denied,
  Corrupt,
  Internal
};

std::string_view toString(ErrorCode code);

/// A place in an input file; line and column count from 1, 0 means unknown.
struct SourceRef {
  std::string file;
  int line = 0;
  int column = 0;

  std::string str() const;  ///< "file:line:column"
  friend bool operator==(const SourceRef&, const SourceRef&) = default;
};

/// A value of any enum that a folder declares for its own reasons.
class ErrorReason {
 public:
  template <class E>
    requires std::is_enum_v<E>
  ErrorReason(E value) : type_(&kType<E>), value_(static_cast<int>(value)) {}

  template <class E>
  std::optional<E> as() const {
    return type_ == &kType<E> ? std::optional(static_cast<E>(value_)) : std::nullopt;
  }
  friend bool operator==(const ErrorReason&, const ErrorReason&) = default;

 private:
  template <class E>
  static inline const char kType = 0;  ///< its address tells one enum from another

  const char* type_;
  int value_;
};

class Error {
 public:
  Error(ErrorCode code, std::string text);

  /// Adds the context of the caller: what was being done when this happened. Outermost is added
  /// last.
  Error& within(std::string context) &;
  Error within(std::string context) &&;
  Error at(SourceRef where) &&;
  /// Adds a reason that code decides by.
  Error because(ErrorReason reason) &&;
  /// Overrides the default: Unavailable and Timeout can be retried, nothing else.
  Error retryable(bool can) &&;

  ErrorCode code() const { return code_; }
  const std::string& text() const { return text_; }
  const std::vector<std::string>& context() const { return context_; }
  const std::optional<SourceRef>& where() const { return where_; }
  bool canRetry() const { return retryable_; }
  bool has(ErrorReason reason) const;
  const std::vector<ErrorReason>& reasons() const { return reasons_; }

  /// "outer: inner: text", with the source place in front when known.
  std::string str() const;

 private:
  ErrorCode code_;
  std::string text_;
  std::vector<std::string> context_;
  std::optional<SourceRef> where_;
  std::vector<ErrorReason> reasons_;
  bool retryable_;
};

template <class T = void>
using Result = std::expected<T, Error>;

/// `return fail(ErrorCode::NotFound, "…");`
std::unexpected<Error> fail(ErrorCode code, std::string text);
std::unexpected<Error> fail(Error error);

}  // namespace muster

// TRY(x, expr): x is the value of expr, or the enclosing function returns its error. CO_TRY is the
// coroutine's form. TRY_OK(expr) is for Result<void>.
#define MUSTER_TRY_IMPL(ret, var, expr)                                    \
  auto var##_result = (expr);                                              \
  if (!var##_result) ret std::unexpected(std::move(var##_result).error()); \
  auto& var = *var##_result
#define TRY(var, expr) MUSTER_TRY_IMPL(return, var, expr)
#define CO_TRY(var, expr) MUSTER_TRY_IMPL(co_return, var, expr)
#define TRY_OK(expr)                                                                         \
  do {                                                                                       \
    if (auto try_ok_ = (expr); !try_ok_) return std::unexpected(std::move(try_ok_).error()); \
  } while (false)
#define CO_TRY_OK(expr)                                                  \
  do {                                                                   \
    auto try_ok_ = (expr);                                               \
    if (!try_ok_) co_return std::unexpected(std::move(try_ok_).error()); \
  } while (false)
