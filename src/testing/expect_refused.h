// What a refusal must be: an error of one code that names its cause.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hearth/result.h"

namespace hearth {

template <typename T>
void ExpectRefused(const Result<T>& result, Code code,
                   const std::string& words) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_NE(result.error().message.find(words), std::string::npos)
      << result.error().message;
}

}  // namespace hearth
