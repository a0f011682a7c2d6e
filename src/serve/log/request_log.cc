#include "serve/log/request_log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace hearth::serve {
namespace {

constexpr std::size_t kFileBytes = std::size_t{16} << 20;
constexpr std::size_t kFiles = 4;
constexpr std::size_t kQueue = 4096;

class AsyncLog final : public RequestLog {
 public:
  explicit AsyncLog(spdlog::sink_ptr sink)
      : pool_(std::make_shared<spdlog::details::thread_pool>(kQueue, 1)),
        logger_(std::make_shared<spdlog::async_logger>(
            "requests", std::move(sink), pool_,
            spdlog::async_overflow_policy::overrun_oldest)) {
    logger_->set_pattern("%v");
    logger_->flush_on(spdlog::level::info);
    logger_->set_error_handler([](const std::string&) {
      // A full disk must not stop answers, nor fill a terminal.
    });
  }
  void Write(const std::string& json) override {
    logger_->log(spdlog::level::info, json);
  }

 private:
  const std::shared_ptr<spdlog::details::thread_pool> pool_;
  const std::shared_ptr<spdlog::async_logger> logger_;
};

}  // namespace

Result<std::unique_ptr<RequestLog>> RequestLog::Open(const std::string& path) {
  try {
    spdlog::sink_ptr sink;
    if (path.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
          path, kFileBytes, kFiles);
    }
    return std::unique_ptr<RequestLog>(
        std::make_unique<AsyncLog>(std::move(sink)));
  } catch (const spdlog::spdlog_ex& error) {
    return {Code::kIo, "the log " + path + ": " + error.what()};
  }
}

}  // namespace hearth::serve
