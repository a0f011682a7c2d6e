// Which device an engine runs on, and what is said where there is no card.
#include <gtest/gtest.h>

#include <string>

#include "cuda/driver.h"
#include "cuda/driver_device.h"
#include "hearth/engine.h"

namespace hearth {
namespace {

TEST(Driver, ALibraryThatIsNotThereIsRefusedWithCauseAndRemedy) {
  const auto opened = gpu::OpenDriver("libhearth-no-such-driver.so.1");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kUnsupported);
  EXPECT_NE(opened.error().message.find("libhearth-no-such-driver.so.1"),
            std::string::npos);
  EXPECT_NE(opened.error().message.find("use the CPU"), std::string::npos);
}

TEST(Driver, ALibraryThatIsNoDriverIsRefused) {
  const auto opened = gpu::OpenDriver("libm.so.6");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kUnsupported);
  EXPECT_NE(opened.error().message.find("has no cuInit"), std::string::npos)
      << opened.error().message;
}

TEST(DeviceChoice, WithoutACardAutoIsTheCpuAndCudaIsRefused) {
  if (gpu::OpenCard().ok()) GTEST_SKIP() << "there is a card";
  const auto automatic = Engine::Open({.device = DeviceChoice::kAuto});
  ASSERT_TRUE(automatic.ok()) << automatic.error().message;
  EXPECT_EQ((*automatic)->device().name, "CPU");
  EXPECT_EQ((*automatic)->device().why, "");
  const auto insisted = Engine::Open({.device = DeviceChoice::kCuda});
  ASSERT_FALSE(insisted.ok());
  EXPECT_EQ(insisted.error().code, Code::kUnsupported);
  EXPECT_NE(insisted.error().message.find("use the CPU"), std::string::npos)
      << insisted.error().message;
}

}  // namespace
}  // namespace hearth
