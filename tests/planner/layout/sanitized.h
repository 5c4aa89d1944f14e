// Sanitizers make tests ten times slower and more; they look for other faults than what a test asserts, and for these
// a part of its rounds is enough.
#pragma once

namespace memopt::layout {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// So many rounds, or as many as are enough with a sanitizer. What is counted over all rounds has to be asked of it,
// too.
constexpr int rounds(int count) { return kSanitized ? (count + 7) / 8 : count; }

}  // namespace memopt::layout
