// What a block, a macro or a recursive loop changes in a Vm while it runs.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "chat/jinja/run/vm.h"

namespace hearth::jinja {

// Makes `scope` current for as long as it lives.
class Vm::ScopeGuard {
 public:
  ScopeGuard(Vm* vm, std::shared_ptr<Scope> scope)
      : vm_(vm), saved_(std::move(vm->scope_)) {
    vm_->scope_ = std::move(scope);
  }
  ~ScopeGuard() { vm_->scope_ = std::move(saved_); }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  const std::shared_ptr<Scope>& outer() const { return saved_; }

 private:
  Vm* vm_;
  std::shared_ptr<Scope> saved_;
};

// The same, and keeps what is printed meanwhile.
class Vm::CaptureGuard {
 public:
  CaptureGuard(Vm* vm, std::shared_ptr<Scope> scope)
      : scope_(vm, std::move(scope)),
        vm_(vm),
        saved_(std::exchange(vm->out_, std::string())) {}
  ~CaptureGuard() { vm_->out_ = std::move(saved_); }
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;

  // What was printed so far, as a value.
  Result<Value> Take() {
    std::string printed = std::exchange(vm_->out_, std::string());
    HEARTH_TRY(vm_->budget_.BuildString(printed.size()));
    return Value::String(std::move(printed));
  }

 private:
  ScopeGuard scope_;
  Vm* vm_;
  std::string saved_;
};

}  // namespace hearth::jinja
