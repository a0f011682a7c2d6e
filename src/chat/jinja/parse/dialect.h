// Whose values a template computes with.
#pragma once

namespace hearth {

enum class TemplateDialect {
  // Hugging Face's Python reference: what a model saw in training.
  kPython,
  // Hugging Face's JavaScript engine: true and null instead of True and None,
  // containers print as JSON, + joins a string with a number, filters give
  // lists. For templates that were only ever run in a browser.
  kJavaScript,
};

}  // namespace hearth
