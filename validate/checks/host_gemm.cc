#include "validate/checks/host_gemm.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <random>
#include <thread>

namespace muster::validate {
namespace {

constexpr int kBlock = 16;
constexpr int kOperandLimit = 31;  // |a·b| ≤ 31² and n ≤ 4096: sums below 2^22, exact in FP32 in any order

struct Matrices {
  std::vector<float> a, b, c;
  std::vector<std::int8_t> a_exact, b_exact;
  std::vector<float> golden;
};

Matrices prepare(int n, std::uint64_t seed) {
  const auto size = static_cast<std::size_t>(n) * n;
  Matrices m;
  m.a_exact.resize(size), m.b_exact.resize(size);
  std::mt19937_64 random(seed);
  for (auto* values : {&m.a_exact, &m.b_exact})
    for (auto& value : *values) value = static_cast<std::int8_t>(static_cast<int>(random() % (2 * kOperandLimit + 1)) - kOperandLimit);
  m.a.assign(m.a_exact.begin(), m.a_exact.end());
  m.b.assign(m.b_exact.begin(), m.b_exact.end());
  m.c.resize(size), m.golden.resize(size);
  std::vector<std::int32_t> row(n);
  for (int i = 0; i < n; ++i) {  // integer units make the golden, not the ones under test
    std::fill(row.begin(), row.end(), 0);
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) row[j] += m.a_exact[i * n + k] * m.b_exact[k * n + j];
    for (int j = 0; j < n; ++j) m.golden[i * n + j] = static_cast<float>(row[j]);
  }
  return m;
}

void multiply(const float* a, const float* b, float* c, int n) {
  std::memset(c, 0, sizeof(float) * n * n);
  for (int kk = 0; kk < n; kk += kBlock)
    for (int i = 0; i < n; ++i)
      for (int k = kk; k < kk + kBlock; ++k) {
        const float value = a[i * n + k];
        for (int j = 0; j < n; ++j) c[i * n + j] += value * b[k * n + j];
      }
}

void flipBit(float& value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits ^= 1u << 13;
  std::memcpy(&value, &bits, sizeof bits);
}

// -0.0 and 0.0 are the same sum; everything else must agree bit by bit.
bool same(float seen, float expected) { return std::memcmp(&seen, &expected, sizeof seen) == 0 || (seen == 0 && expected == 0); }

void compare(const Matrices& m, int n, unsigned thread, GemmReport& report) {
  for (int at = 0; at < n * n; ++at) {
    if (same(m.c[at], m.golden[at])) continue;
    if (report.wrong_values++ == 0)
      report.first_error = fmt::format("thread {} product {} row {} column {}: expected {} saw {}", thread, report.products, at / n, at % n,
                                       m.golden[at], m.c[at]);
  }
}

void verifyInputs(const Matrices& m, unsigned thread, GemmReport& report) {
  for (std::size_t at = 0; at < m.a.size(); ++at) {
    if (same(m.a[at], m.a_exact[at]) && same(m.b[at], m.b_exact[at])) continue;
    if (report.corrupt_inputs++ == 0 && report.first_error.empty())
      report.first_error = fmt::format("thread {}: an input value changed in memory at index {}", thread, at);
  }
}

GemmReport work(int n, unsigned thread, std::uint64_t seed, std::chrono::milliseconds duration, GemmFault fault) {
  GemmReport report;
  Matrices m = prepare(n, seed + thread);
  if (fault == GemmFault::FlipInputBit) flipBit(m.a[n + 1]);
  const auto start = std::chrono::steady_clock::now();
  do {
    multiply(m.a.data(), m.b.data(), m.c.data(), n);
    if (fault == GemmFault::FlipOutputBit) flipBit(m.c[n / 2]);
    if (fault == GemmFault::NotANumber) m.c[n / 3] = std::numeric_limits<float>::quiet_NaN();
    compare(m, n, thread, report);
    ++report.products;
  } while (std::chrono::steady_clock::now() - start < duration);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  verifyInputs(m, thread, report);
  report.gflops = 2e-9 * n * n * n * static_cast<double>(report.products) / seconds.count();
  return report;
}

}  // namespace

GemmReport runHostGemm(int n, unsigned threads, std::uint64_t seed, std::chrono::milliseconds duration, GemmFault fault) {
  std::vector<GemmReport> reports(threads);
  {
    std::vector<std::jthread> pool;
    for (unsigned thread = 0; thread < threads; ++thread)
      pool.emplace_back([&, thread] { reports[thread] = work(n, thread, seed, duration, thread == 0 ? fault : GemmFault::None); });
  }
  GemmReport sum;
  for (auto& report : reports) {
    sum.gflops += report.gflops;
    sum.products += report.products;
    sum.wrong_values += report.wrong_values;
    sum.corrupt_inputs += report.corrupt_inputs;
    if (sum.first_error.empty()) sum.first_error = report.first_error;
  }
  return sum;
}

}  // namespace muster::validate
