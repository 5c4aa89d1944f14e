// Recomputation as a linear programme that every plan meets: memory is looked at when some launches of the program
// begin to run, the instants, and nowhere else.
//
// Instants e_1 < ... < e_K; range (j, k) is from when e_j begins to run until e_k does, e_0 being the beginning of the
// iteration and e_{K+1} its end. The ranges (k-1, k) are the intervals. Variables, all between 0 and 1:
//   S[k,c]    content c is in memory when e_k begins to run
//   R[j,k,l]  launch l is replayed in the range, once or more; the least sum of ns(l) * R[k-1,k,l] over the intervals
// c is old in a range if the program has made it before its e_j; m(c) is the launch that makes it. For each range:
//   (1) S[k,c] <= S[j,c] + R[j,k,m(c)]    c old; if the program frees or overwrites c in the range, old or not, without
//                                         S[j,c]
//   (2) 1 <= S[j,c] + R[j,k,m(c)]         c old, and a launch that the program runs in the range finds it
//   (3) R[j,k,l] <= S[j,c] + R[j,k,m(c)]  c old, and l reads it
//   (4) R[j,k,l] <= sum of R[i-1,i,l]     over the range's intervals
//   (5) R[j,k,l] = 0                      all of the range is before l, or behind what l reads and can't be made again
// and for each instant:
//   (6) S[k,c] = 1                        e_k finds c
//   (7) sum of bytes(c) * S[k,c] <= budget less other_bytes(e_k)
//   (8) sum of S[k,c] <= 1                over the contents of one block
// Every plan meets it, with 1 for what is so in the plan and 0 else. An old content gets into memory in a range by a
// replay of m(c) in it and in no other way, as the program has made it before, which is (1) to (3): a replay reads c in
// that very version, where it is since e_j or was made again. What the program runs finds c, (2) and (6). (4) and (5)
// hold by definition, and a block in memory takes its bytes (7) in one version (8). Added time counts each replay, the
// programme each launch once an interval. What else is asked of plans is left out: what is in memory between instants,
// what a replay needs besides, in which order replays come, that a later version is made of the one before where no
// launch reads that, and that nothing is in parts.
//
// The ranges are the intervals, and those from each instant to the end. In parts, a launch may be replayed by halves in
// two intervals, and what it reads be there by half in each: with intervals alone, more instants say less. (3) for the
// whole of them does not allow that, so that no instant on its own says more than the programme.
//
// Of Checkmate's programme (Jain et al. 2020, section 4) it has S and R, and what links them. There a stage is one node
// of the graph and computes what it needs of all before it, n^2 variables in all, and memory is looked at behind each
// node of each stage; here what the program itself computes is given, and instants are as few as one wants. Contents
// that are overwritten, launches of several outputs, what the program frees, and ranges are not in theirs. OffMate
// (Zhao et al. 2024) adds copies to the host, which may be in parts.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/recompute/bounds/contents.h"

namespace memopt::recompute {

struct Relaxed {
  double ns = 0;              // no plan adds less; infinite: there is none
  bool optimal = false;       // the programme says no more than that
  std::vector<double> loads;  // by launch, bytes in memory of the programme's solution, at least; empty: not found
};

// `instants`: launches, ascending, each once. For about `seconds`; `ns` holds also where that is not enough.
Relaxed relax(const Contents& contents, std::uint64_t budget, const std::vector<std::uint32_t>& instants,
              double seconds);

}  // namespace memopt::recompute
