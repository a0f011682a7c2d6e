// Answers of /v1/responses.
#include "serve/wire/responses/notes.h"
#include "serve/wire/responses/output_items.h"
#include "serve/wire/writer/figures.h"
#include "serve/wire/writer/ids.h"
#include "serve/wire/writer/writer_base.h"
#include "serve/wire/writer/writers.h"

namespace hearth::serve {
namespace {

OrderedJson ResponsesUsage(const Usage& usage) {
  return {{"input_tokens", usage.prompt},
          {"input_tokens_details",
           {{"cached_tokens", usage.reused},
            {"cache_write_tokens", usage.written}}},
          {"output_tokens", usage.completion},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning}}},
          {"total_tokens", usage.prompt + usage.completion}};
}

// Items that came without an id get one, so that they can be named.
OrderedJson WithIds(OrderedJson items, const std::string& request_id) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    OrderedJson& item = items[i];
    if (!item.is_object() || item.find("id") != item.end()) continue;
    item["id"] = ItemId("in", request_id, "i" + std::to_string(i));
  }
  return items;
}

class ResponsesWriter : public WriterBase {
 public:
  explicit ResponsesWriter(const WriterParts& parts)
      : WriterBase(parts.request, parts.served, parts.request_id, parts.now_s),
        notes_(parts.request.notes == nullptr
                   ? ResponsesNotes()
                   : static_cast<const ResponsesNotes&>(*parts.request.notes)),
        items_(notes_, request_id_, request_.stream, request_.logprobs,
               parts.vault) {}

  std::string_view content_type() const override {
    return request_.stream ? kEventStream : kJsonType;
  }
  std::string id() const override { return OwnId("resp_"); }

  std::string Begin(const Usage&, const Figures&) override {
    const std::string created = State("response.created");
    return created + State("response.in_progress");
  }

  // A comment would not count: one client closes after 300 s of them.
  std::string Ping(int, int, double) override {
    return request_.stream ? State("response.in_progress") : " ";
  }

  std::string End(const Usage& usage, const Figures& figures) override {
    const OrderedJson hearth =
        HearthObject(request_, usage, WithFault(figures));
    OrderedJson response = Final(usage);
    done_ = true;
    final_ = response;
    if (request_.stream) {
      const bool whole = response["status"] == "completed";
      return items_.Send(
          whole ? "response.completed" : "response.incomplete",
          {{"response", std::move(response)}, {"hearth", hearth}});
    }
    response["hearth"] = hearth;
    return Dump(response);
  }

  std::string Fail(const WireError& error) override {
    if (!request_.stream) {
      return ErrorBody(Dialect::kResponses, error, request_id_);
    }
    OrderedJson response = Response("failed");
    response["output"] = items_.items();
    response["error"] = {
        {"code", error.code.empty() ? "server_error" : error.code},
        {"message", error.message}};
    OrderedJson members = OrderedJson::object();
    members["response"] = std::move(response);
    return items_.Send("response.failed", std::move(members));
  }

  std::optional<StoredResponse> TakeRecord() override {
    if (!done_ || !notes_.store) return std::nullopt;
    return StoredResponse{
        .id = id(),
        .space = request_.space,
        .created_s = now_s_,
        .previous_id = notes_.previous_id,
        .input_json = Dump(WithIds(notes_.input, request_id_)),
        .response_json = Dump(final_)};
  }

 protected:
  std::string OnPiece(int, WrittenChoice& choice, Kind kind,
                      const std::string& text,
                      const std::vector<LogprobEntry>& logprobs) override {
    switch (kind) {
      case Kind::kReasoning:
        return items_.Reasoning(text);
      case Kind::kText:
        return items_.Text(text, logprobs);
      case Kind::kCallBegin:
        return items_.BeginCall(choice.calls.back());
      case Kind::kCallArguments:
        return items_.Arguments(text);
      case Kind::kCallEnd:
        return items_.Close(true);
      default:
        return {};
    }
  }

  std::string OnFinish(int, WrittenChoice& choice) override {
    reason_ = choice.reason;
    return items_.Close(Whole());
  }

 private:
  bool Whole() const {
    return reason_ == FinishReason::kStop ||
           reason_ == FinishReason::kToolCalls;
  }

  std::string State(const char* type) {
    OrderedJson members = OrderedJson::object();
    members["response"] = Response("in_progress");
    return items_.Send(type, std::move(members));
  }

  OrderedJson Response(const char* status) const {
    OrderedJson response = {{"id", id()},
                            {"object", "response"},
                            {"created_at", now_s_},
                            {"status", status},
                            {"background", false},
                            {"error", nullptr},
                            {"incomplete_details", nullptr},
                            {"model", served_.id},
                            {"output", OrderedJson::array()},
                            {"usage", nullptr}};
    response.update(notes_.echo);
    return response;
  }

  OrderedJson Final(const Usage& usage) const {
    OrderedJson response = Response(Whole() ? "completed" : "incomplete");
    if (!Whole()) {
      response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    } else {
      response["completed_at"] = now_s_;
    }
    response["output"] = items_.items();
    response["usage"] = ResponsesUsage(usage);
    return response;
  }

  const ResponsesNotes notes_;
  OutputItems items_;
  FinishReason reason_ = FinishReason::kStop;
  bool done_ = false;
  OrderedJson final_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeResponsesWriter(const WriterParts& parts) {
  return std::make_unique<ResponsesWriter>(parts);
}

}  // namespace hearth::serve
