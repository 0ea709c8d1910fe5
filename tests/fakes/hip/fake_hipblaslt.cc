// SPDX-License-Identifier: Apache-2.0
// hipBLASLt's exported names: op(A)·op(B) by definition, column-major. Numbers and types are those
// of hipblaslt.h, hipblas-common.h and library_types.h of ROCm 6.3.
#include "tests/fakes/gpu/narrow_floats.h"
#include "tests/fakes/hip/fake_hip.h"

#include <cmath>
#include <cstring>
#include <map>
#include <vector>

extern "C" int hipGetDevice(int* device);

namespace {

using muster::test::fakeHip;
namespace narrow = muster::test::narrow;

enum { kOk = 0, kInvalidValue = 3, kNotSupported = 7 };
constexpr int kSlowTurns = 16;

struct Handle {
  int device;
};
struct Desc {
  int compute, scale;
  std::int32_t transpose_a = 111, transpose_b = 111;
  std::uint32_t mode_a = 0, mode_b = 0;  // 2: a scale for 32 values along k
  const std::uint8_t *scales_a = nullptr, *scales_b = nullptr;
};
struct Layout {
  int type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};
struct Preference {
  std::uint64_t workspace = 0;
};
struct Algorithm {
  std::uint8_t data[16];
  std::size_t max_workspace;
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

template <class T>
int make(void** to, T value) {
  ++fakeHip().handles;
  return *to = new T(value), kOk;
}
template <class T>
int drop(void* handle) {
  --fakeHip().handles;
  delete static_cast<T*>(handle);
  return kOk;
}

double valueAt(int type, const void* from, std::uint64_t index) {
  const auto byte = [&] { return static_cast<const std::uint8_t*>(from)[index]; };
  const auto two = [&] { return static_cast<const std::uint16_t*>(from)[index]; };
  switch (type) {
    case 0:
      return static_cast<double>(static_cast<const float*>(from)[index]);
    case 1:
      return static_cast<const double*>(from)[index];
    case 2:
      return narrow::half(two());
    case 3:
      return static_cast<const std::int8_t*>(from)[index];
    case 14:
      return narrow::brain(two());
    case 28:
      return narrow::e4m3(byte());
    case 29:
      return narrow::e5m2(byte());
    case 1000:
      return narrow::e4m3Fnuz(byte());
    case 1001:
      return narrow::e5m2Fnuz(byte());
    default:
      return std::nan("");
  }
}

bool put(int type, void* to, std::uint64_t index, double value) {
  switch (type) {
    case 0:
      static_cast<float*>(to)[index] = static_cast<float>(value);
      return true;
    case 1:
      static_cast<double*>(to)[index] = value;
      return true;
    case 2:
      static_cast<_Float16*>(to)[index] = static_cast<_Float16>(value);
      return true;
    case 10:
      static_cast<std::int32_t*>(to)[index] = static_cast<std::int32_t>(value);
      return true;
    default:
      return false;
  }
}

/// CDNA 3 has FNUZ formats and no others of 8 bits, CDNA 4 OCP's.
bool multiplies(const std::string& architecture, int type) {
  if (type == 1000 || type == 1001) return architecture.starts_with("gfx942");
  if (type == 28 || type == 29) return architecture.starts_with("gfx950");
  return true;
}

double sumFromTheEnd(const double* row, const double* column, std::uint64_t n, int type) {
  double wide = 0;
  float narrow_sum = 0;
  for (std::uint64_t k = n; k-- > 0;)
    wide += row[k] * column[k],
        narrow_sum += static_cast<float>(row[k]) * static_cast<float>(column[k]);
  return type == 0 ? static_cast<double>(narrow_sum) : wide;
}

std::vector<double> linesOf(const Layout& layout, const void* from, bool transposed) {
  const auto n = layout.rows;
  std::vector<double> lines(n * n);
  for (std::uint64_t line = 0; line < n; ++line)
    for (std::uint64_t k = 0; k < n; ++k) {
      const auto row = transposed ? k : line, column = transposed ? line : k;
      lines[line * n + k] =
          valueAt(layout.type, from, column * static_cast<std::uint64_t>(layout.leading) + row);
    }
  return lines;
}

/// hipblaslt.h: "a dedicated scaling factor stored as an 8-bit R_8F_UE8M0 value for each 32-element
/// block in the innermost dimension"; the innermost of a column-major operand of k rows is k.
void scale(std::vector<double>& lines, std::uint64_t n, const std::uint8_t* scales) {
  for (std::uint64_t line = 0; line < n; ++line)
    for (std::uint64_t k = 0; k < n; ++k)
      lines[line * n + k] = std::ldexp(lines[line * n + k], scales[(line * n + k) / 32] - 127);
}

/// OCP's FP8 with scales, k innermost in both, on CDNA 4 alone.
bool canScale(const Desc& how, const Layout& left, const Layout& right) {
  return fakeHip().architecture.starts_with("gfx950") && how.mode_a == 2 && how.mode_b == 2 &&
         how.scales_a && how.scales_b && how.transpose_a == 112 && how.transpose_b == 111 &&
         left.type == 28 && right.type == 28 && left.rows % 32 == 0;
}

}  // namespace

extern "C" {

int hipblasLtCreate(void** handle) {
  int device = 0;
  hipGetDevice(&device);
  return make(handle, Handle{device});
}
int hipblasLtDestroy(void* handle) { return drop<Handle>(handle); }
int hipblasLtGetVersion(void*, int* version) { return *version = fakeHip().blas_version, kOk; }
int hipblasLtMatmulDescCreate(void** desc, int compute, int scale) {
  return make(desc, Desc{compute, scale});
}
int hipblasLtMatmulDescDestroy(void* desc) { return drop<Desc>(desc); }
int hipblasLtMatmulDescSetAttribute(void* desc, int what, const void* value, std::size_t bytes) {
  auto& mine = *static_cast<Desc*>(desc);
  const std::map<int, std::pair<void*, std::size_t>> known{
      {0, {&mine.transpose_a, 4}}, {1, {&mine.transpose_b, 4}}, {5, {&mine.scales_a, 8}},
      {6, {&mine.scales_b, 8}},    {31, {&mine.mode_a, 4}},     {32, {&mine.mode_b, 4}}};
  const auto found = known.find(what);
  if (found == known.end() || found->second.second != bytes) return kInvalidValue;
  return std::memcpy(found->second.first, value, bytes), kOk;
}
int hipblasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                                std::int64_t leading) {
  return make(layout, Layout{type, rows, columns, leading});
}
int hipblasLtMatrixLayoutDestroy(void* layout) { return drop<Layout>(layout); }
int hipblasLtMatmulPreferenceCreate(void** preference) { return make(preference, Preference{}); }
int hipblasLtMatmulPreferenceDestroy(void* preference) { return drop<Preference>(preference); }
int hipblasLtMatmulPreferenceSetAttribute(void* preference, int what, const void* value,
                                          std::size_t bytes) {
  if (what != 1 || bytes != 8) return kInvalidValue;
  return std::memcpy(&static_cast<Preference*>(preference)->workspace, value, bytes), kOk;
}
/// Four algorithms: 0 is refused, 1 and 2 work, 3 splits the sum and wants a workspace.
int hipblasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int wanted,
                                    void* results, int* found) {
  *found = fakeHip().no_algorithm ? 0 : std::min(wanted, 4);
  for (int i = 0; i < *found; ++i) {
    auto& result = static_cast<Heuristic*>(results)[i];
    result = {};
    result.state = i == 0 ? kNotSupported : kOk;
    result.algorithm.data[0] = static_cast<std::uint8_t>(i);
    result.workspace = i == 3 ? 1 << 20 : 0;
  }
  return kOk;
}
int hipblasLtMatmul(void* handle, void* desc, const void*, const void* a, void* a_layout,
                    const void* b, void* b_layout, const void*, const void*, void*, void* c,
                    void* c_layout, const void* algorithm, void*, std::size_t, void*) {
  int device = -1;
  hipGetDevice(&device);
  const auto& how = *static_cast<Desc*>(desc);
  const auto &left = *static_cast<Layout*>(a_layout), &right = *static_cast<Layout*>(b_layout),
             &out = *static_cast<Layout*>(c_layout);
  if (static_cast<Handle*>(handle)->device != device) return kInvalidValue;
  for (const auto* layout : {&left, &right})
    if (!multiplies(fakeHip().architecture, layout->type)) return kNotSupported;
  const int which = fakeHip().last_algorithm = static_cast<const Algorithm*>(algorithm)->data[0];
  const auto n = out.rows;
  auto rows = linesOf(left, a, how.transpose_a == 112),
       columns = linesOf(right, b, how.transpose_b != 112);
  if (how.mode_a || how.mode_b) {
    if (!canScale(how, left, right)) return kNotSupported;
    scale(rows, n, how.scales_a), scale(columns, n, how.scales_b);
  }
  for (std::uint64_t j = 0; j < n; ++j)
    for (std::uint64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int turn = 0; turn < (which == fakeHip().slow_algorithm ? kSlowTurns : 1); ++turn) {
        sum = 0;
        for (std::uint64_t k = 0; k < n; ++k) sum += rows[i * n + k] * columns[j * n + k];
      }
      if (which == 2) sum = sumFromTheEnd(&rows[i * n], &columns[j * n], n, out.type);
      if (!put(out.type, c, j * static_cast<std::uint64_t>(out.leading) + i, sum))
        return kNotSupported;
    }
  ++fakeHip().products;
  return kOk;
}

}  // extern "C"
