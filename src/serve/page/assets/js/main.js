// Everything set up, in the order of the page.

function showModel() {
  const { id, context_tokens: context } = state.model;
  setText(byId("model"), id ? `${id} · ${plural(context, "token")} of context` : "");
  document.title = id ? `hearth · ${id}` : "hearth";
}

setUpTheme();
whenChanged(["model"], showModel);
whenChanged(["meters", "today", "rates", "series"], showMeters);
setUpLanes();
setUpTree();
setUpField();
setUpRequests();
setUpConnect();
setUpChat();
followEvents();
