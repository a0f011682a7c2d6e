// What tools made for llama-server ask beside answers.
#include "serve/routes/routes.h"
#include "serve/turn/prepare.h"

namespace hearth::serve {
namespace {

const char* NameOf(JobView::State state) {
  switch (state) {
    case JobView::State::kWaiting:
      return "waiting";
    case JobView::State::kMatching:
      return "matching";
    case JobView::State::kPrefill:
      return "prefill";
    case JobView::State::kDecode:
      return "decode";
    default:
      return "paused";
  }
}

HttpAnswer BadRequest(const Call& call, const std::string& message,
                      const std::string& param = {}) {
  WireError error;
  error.message = message;
  error.param = param;
  return ErrorAnswer(Dialect::kLlamaCompletion, error, call.id);
}

OrderedJson SamplingJson(const Core& core) {
  const SamplingOptions& s = core.sampling;
  return {{"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"repeat_penalty", s.repeat_penalty},
          {"repeat_last_n", s.repeat_last_n},
          {"presence_penalty", s.presence_penalty},
          {"frequency_penalty", s.frequency_penalty}};
}

HttpAnswer Props(Core& core, const Call&) {
  return JsonAnswer(
      {{"default_generation_settings",
        {{"n_ctx", core.served.context_tokens},
         {"params", SamplingJson(core)}}},
       {"total_slots", core.scheduling.running_max},
       {"model_alias", core.served.id},
       {"model_path", core.served.id},
       {"chat_template", core.chat_template},
       {"tool_format",
        core.dialogue == nullptr ? "" : core.dialogue->tool_format()},
       {"modalities", {{"vision", false}, {"audio", false}}},
       {"build_info", "hearth"}});
}

// Running requests, in the place where llama-server shows its slots. Numbers
// alone.
HttpAnswer Slots(Core& core, const Call&) {
  OrderedJson slots = OrderedJson::array();
  const SchedulerView view = core.scheduler->View();
  for (const JobView& job : view.jobs) {
    slots.push_back({{"id", slots.size()},
                     {"id_task", job.id},
                     {"n_ctx", core.served.context_tokens},
                     {"is_processing", true},
                     {"state", NameOf(job.state)},
                     {"n_prompt_tokens", job.prompt_tokens},
                     {"n_prompt_tokens_cache", job.reused_tokens},
                     {"n_prompt_tokens_processed", job.tokens_done},
                     {"n_decoded", job.generated}});
  }
  return JsonAnswer(slots);
}

HttpAnswer MetricsText(Core& core, const Call&) {
  const SchedulerView view = core.scheduler->View();
  ServerGauges now;
  for (const JobView& job : view.jobs) {
    const bool waits = job.state == JobView::State::kWaiting;
    ++(waits ? now.waiting : now.running);
  }
  now.resting = view.resting;
  now.connections = core.n_connections ? core.n_connections() : 0;
  now.prefill_rate = view.prefill_rate;
  now.decode_rate = view.decode_rate;
  now.passes = view.passes;
  now.mixed_passes = view.mixed_passes;
  now.rows = view.rows;
  now.preempted_prefills = view.preempted_prefills;
  now.preempted_decodes = view.preempted_decodes;
  const KvMemory memory = core.engine->MemoryInUse();
  now.kv_held_bytes = memory.held_bytes;
  now.kv_mapped_bytes = memory.mapped_bytes;
  now.kv_state_bytes = memory.state_bytes;
  now.kv_budget_bytes = core.engine->options().kv_ram_budget_bytes;
  now.store_budget_bytes = core.engine->options().cache_disk_budget_bytes;
  const SaveReport saves = core.engine->Saves();
  now.save_queue_bytes = saves.waiting_bytes;
  now.saves_lost = saves.n_lost;
  now.store_bytes = core.engine->StoredBytes().value_or(0);
  HttpAnswer answer;
  answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
  answer.body = core.metrics->Text(now);
  return answer;
}

HttpAnswer Tokenize(Core& core, const Call& call) {
  const auto body = BodyObject(call.http);
  if (!body.ok()) return BadRequest(call, body.error().message);
  const auto content = body->find("content");
  if (content == body->end() || !content->is_string()) {
    return BadRequest(call, "content must be a text", "content");
  }
  const auto flag = [&](const char* name, bool otherwise) {
    const auto found = body->find(name);
    return found != body->end() && found->is_boolean() ? found->get<bool>()
                                                       : otherwise;
  };
  const TextCodec& codec = core.engine->codec();
  const auto ids =
      codec.Encode(content->get<std::string>(), flag("add_special", false));
  if (!ids.ok()) {
    return ErrorAnswer(Dialect::kLlamaCompletion, WireErrorOf(ids.error()),
                       call.id);
  }
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : *ids) {
    if (!flag("with_pieces", false)) {
      tokens.push_back(id);
      continue;
    }
    const auto piece = codec.Decode({&id, 1});
    tokens.push_back({{"id", id}, {"piece", piece.ok() ? *piece : ""}});
  }
  return JsonAnswer({{"tokens", tokens}});
}

HttpAnswer Detokenize(Core& core, const Call& call) {
  const auto body = BodyObject(call.http);
  if (!body.ok()) return BadRequest(call, body.error().message);
  const auto tokens = body->find("tokens");
  if (tokens == body->end() || !tokens->is_array()) {
    return BadRequest(call, "tokens must be a list of ids", "tokens");
  }
  std::vector<std::int32_t> ids;
  for (const OrderedJson& token : *tokens) {
    const bool fits = token.is_number_integer() &&
                      token.get<std::int64_t>() >= 0 &&
                      token.get<std::int64_t>() <= INT32_MAX;
    if (!fits) return BadRequest(call, "a token is no id", "tokens");
    ids.push_back(token.get<std::int32_t>());
  }
  const auto text = core.engine->codec().Decode(ids);
  if (!text.ok()) return BadRequest(call, text.error().message, "tokens");
  return JsonAnswer({{"content", *text}});
}

// The prompt of a chat request, as text.
HttpAnswer ApplyTemplate(Core& core, const Call& call) {
  ParseContext context;
  context.has_tool_format =
      core.dialogue != nullptr && !core.dialogue->tool_format().empty();
  auto request = ParseRequest(Dialect::kChat, "/v1/chat/completions", "",
                              call.http.body, context);
  if (!request.ok()) {
    return ErrorAnswer(Dialect::kChat, request.error(), call.id);
  }
  const auto prompts = PreparePrompts(core, *request);
  if (!prompts.ok()) {
    return ErrorAnswer(Dialect::kChat, prompts.error(), call.id);
  }
  return JsonAnswer({{"prompt", prompts->front().text}});
}

constexpr Route kRoutes[] = {{"GET", "/props", Props},
                             {"GET", "/slots", Slots},
                             {"GET", "/metrics", MetricsText},
                             {"POST", "/tokenize", Tokenize},
                             {"POST", "/detokenize", Detokenize},
                             {"POST", "/apply-template", ApplyTemplate}};

}  // namespace

std::span<const Route> LlamaRoutes() { return kRoutes; }

}  // namespace hearth::serve
