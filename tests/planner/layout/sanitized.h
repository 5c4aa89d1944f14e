// Sanitizers make tests ten times slower or more. They look for other faults than what a test asserts, and for these a
// part of its rounds is enough.
#pragma once

namespace memopt::layout {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// `count` rounds, or as many as are enough with a sanitizer. Expected counts over all rounds have to be scaled with it,
// too.
constexpr int rounds(int count) { return kSanitized ? (count + 7) / 8 : count; }

}  // namespace memopt::layout
