// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/design.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace muster::validate::isolate {
namespace {

constexpr int kRotations =
    8;  ///< of the second half, before a pair that has met already is taken again

Pair ordered(int a, int b) { return {std::min(a, b), std::max(a, b)}; }

bool isPrime(int number) {
  for (int divisor = 2; divisor * divisor <= number; ++divisor)
    if (number % divisor == 0) return false;
  return number >= 2;
}

/// Irreducible polynomials over GF(2) of degree 1…15, by degree.
constexpr std::array kIrreducible{0,     0x3,   0x7,   0xb,   0x13,   0x25,   0x43,   0x83,
                                  0x11b, 0x203, 0x409, 0x805, 0x1009, 0x201b, 0x4021, 0x8003};

std::map<int, std::vector<int>> byClass(std::span<const int> nodes, std::span<const int> class_of) {
  std::map<int, std::vector<int>> classes;
  for (const int node : nodes) classes[class_of[static_cast<std::size_t>(node)]].push_back(node);
  return classes;
}

}  // namespace

std::vector<Pair> pairHalves(std::span<const int> order, std::set<Pair>& known) {
  const std::size_t half = order.size() / 2;
  std::vector<Pair> pairs;
  if (half == 0) return pairs;
  std::size_t best_turn = 0, fewest = half + 1;
  for (std::size_t turn = 0; turn < std::min<std::size_t>(half, kRotations) && fewest > 0; ++turn) {
    std::size_t met = 0;
    for (std::size_t k = 0; k < half; ++k)
      met += known.contains(ordered(order[k], order[half + (k + turn) % half]));
    if (met < fewest) fewest = met, best_turn = turn;
  }
  for (std::size_t k = 0; k < half; ++k) {
    pairs.emplace_back(order[k], order[half + (k + best_turn) % half]);
    known.insert(ordered(pairs.back().first, pairs.back().second));
  }
  return pairs;
}

std::vector<Pair> matchWithin(std::span<const int> nodes, std::span<const int> class_of,
                              std::set<Pair>& known, Random& random) {
  std::vector<Pair> pairs;
  std::vector<int> left;
  for (auto& [ignored, members] : byClass(nodes, class_of)) {
    std::shuffle(members.begin(), members.end(), random);
    const auto made = pairHalves(members, known);
    pairs.insert(pairs.end(), made.begin(), made.end());
    if (members.size() % 2) left.push_back(members.back());
  }
  const auto made = pairHalves(left, known);
  pairs.insert(pairs.end(), made.begin(), made.end());
  return pairs;
}

std::vector<Pair> matchAcross(std::span<const int> nodes, std::span<const int> class_of,
                              std::set<Pair>& known, Random& random) {
  std::vector<std::vector<int>> classes;
  for (auto& [ignored, members] : byClass(nodes, class_of)) {
    std::shuffle(members.begin(), members.end(), random);
    classes.push_back(std::move(members));
  }
  std::shuffle(classes.begin(), classes.end(), random);
  std::vector<int> order;
  for (const auto& members : classes) order.insert(order.end(), members.begin(), members.end());
  return pairHalves(order, known);
}

AffinePlane::AffinePlane(int points) : points_(points), order_(2) {
  const auto fits = [points](int order) {
    return static_cast<std::int64_t>(order) * order >= points;
  };
  while (!fits(order_) || !(isPrime(order_) || (order_ & (order_ - 1)) == 0)) ++order_;
  if (order_ == 2 || isPrime(order_)) return;
  while ((1 << bits_) < order_) ++bits_;
  polynomial_ = kIrreducible.at(static_cast<std::size_t>(bits_));
}

int AffinePlane::add(int a, int b) const { return bits_ ? a ^ b : (a + b) % order_; }

int AffinePlane::multiply(int a, int b) const {
  if (!bits_) return static_cast<int>(static_cast<std::int64_t>(a) * b % order_);
  int product = 0;
  for (int bit = 0; bit < bits_; ++bit)
    if (b >> bit & 1) product ^= a << bit;
  for (int bit = 2 * bits_ - 2; bit >= bits_; --bit)
    if (product >> bit & 1) product ^= polynomial_ << (bit - bits_);
  return product;
}

std::vector<std::vector<int>> AffinePlane::lines(int parallel_class) const {
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(order_));
  for (int point = 0; point < points_; ++point) {
    const int x = point / order_, y = point % order_;
    // y = slope · x + c; c names the line. In GF(2^m) minus is plus; in a prime field the slopes
    // only come in another order.
    const int line = parallel_class == 0 ? x : add(y, multiply(parallel_class - 1, x));
    groups[static_cast<std::size_t>(line)].push_back(point);
  }
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

std::vector<Pair> hypercube(std::span<const int> nodes, std::span<const int> leaf_of, int bit) {
  std::vector<std::vector<int>> leaves;
  for (auto& [ignored, members] : byClass(nodes, leaf_of)) leaves.push_back(std::move(members));
  std::vector<Pair> pairs;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const std::size_t other = leaf ^ (std::size_t{1} << bit);
    if (other <= leaf || other >= leaves.size()) continue;
    for (std::size_t place = 0; place < std::min(leaves[leaf].size(), leaves[other].size());
         ++place)
      pairs.emplace_back(leaves[leaf][place], leaves[other][place]);
  }
  return pairs;
}

int hypercubeRounds(std::span<const int> nodes, std::span<const int> leaf_of) {
  const auto leaves = byClass(nodes, leaf_of).size();
  int rounds = 0;
  while ((std::size_t{1} << rounds) < leaves) ++rounds;
  return rounds;
}

std::vector<int> ladderSizes(int nodes) {
  constexpr int kSmallest = 4;
  std::vector<int> sizes;
  for (const int part : {16, 4, 1})
    if (const int size = nodes / part; size >= kSmallest) sizes.push_back(size);
  if (sizes.empty() && nodes >= 2) sizes.push_back(nodes);
  return sizes;
}

std::vector<std::vector<int>> blocks(std::span<const int> nodes, int size) {
  std::vector<std::vector<int>> out;
  for (std::size_t begin = 0; begin < nodes.size(); begin += static_cast<std::size_t>(size)) {
    const auto end = std::min(nodes.size(), begin + static_cast<std::size_t>(size));
    if (!out.empty() && end - begin < static_cast<std::size_t>(size + 1) / 2)
      out.back().insert(out.back().end(), nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                        nodes.begin() + static_cast<std::ptrdiff_t>(end));
    else
      out.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                       nodes.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return out;
}

}  // namespace muster::validate::isolate
