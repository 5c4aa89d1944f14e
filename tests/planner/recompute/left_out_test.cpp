// What this build has not says that it is skipped.
#include <gtest/gtest.h>

#if !MEMOPT_HAS_RECOMPUTE_BOUNDS
TEST(LeftOut, TheLinearBoundNeedsItsSolver) { GTEST_SKIP() << "CLP was not there when this was configured"; }
#endif

#if !MEMOPT_HAS_DQN
TEST(LeftOut, WhatLearnsNeedsEigen) { GTEST_SKIP() << "Eigen was not there when this was configured"; }
#endif
