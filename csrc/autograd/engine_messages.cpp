#include "autograd/engine_messages.h"

#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "autograd/record.h"

namespace rl {

// What to do about a second backward through `freed`: it depends on how this run came there.
[[gnu::cold]] std::string advice_on_second_backward(const Node& freed, bool ran_before,
                                                    const std::vector<Node*>& order) {
  if (ran_before)
    return text("\n  backward() ran on this very result before. Call it once",
                ", or pass retain_graph=True to the first call if it is meant to run again.");
  // Calls recorded since the earlier backward that take a value from before it.
  const Node *user = nullptr, *made = nullptr;
  for (const Node* n : order) {
    if (n->sequence <= freed.done || n->type == &NodeTypeOf<AccumulateGrad>::type) continue;
    for (const Edge& e : n->edges)
      if (e.node && e.node->done && e.node->sequence <= freed.done && (!made || e.node->sequence > made->sequence)) {
        user = n;
        made = e.node;
      }
  }
  if (!user)
    return "\n  Two results share this part of the graph. Call backward() once on their sum, (a + b).backward(), or "
           "pass "
           "retain_graph=True to the first of the two calls.";
  std::string name = made->site.assigned();
  std::string value = name.empty() ? "that value" : "`" + name + "`";
  std::string s;
  if (made->site == user->site) {
    s = text("\n  it is used again by the next iteration of the same line, ", user->site.describe(),
             ": a state carried over ", "from one step to the next");
    return s + text("\n  Cut it off between the steps: ",
                    name.empty() ? "h = h.detach()" : name + " = " + name + ".detach()",
                    name.find(',') == std::string::npos ? "" : " (each of them)",
                    " after backward(), so that each step has a graph of its own.");
  }
  if (made->site) s += text("\n  ", value, " was computed before that backward, at ", made->site.describe());
  if (user->site) s += text("\n  and is used again at ", user->site.describe());
  return s + text("\n  Compute ", value,
                  " anew for each backward; or detach() it where no gradient should go further; or ",
                  "pass retain_graph=True to the first backward.");
}

void check_nan(Node& n, const Grads& dx) {
  for (int64_t i = 0; i < dx.size(); ++i)
    if (dx[i].defined() && has_nan(dx[i])) {
      std::string message = text("Function '", n.type->name, "' returned nan values in its ", i, "th output.");
      if (n.site) message += text("\n  the forward call that made it: ", n.site.describe());
      message +=
          "\n  An infinite derivative times zero is NaN. Keep the argument away from the edge, sqrt(x + 1e-12) or "
          "x.clamp(min=1e-12), or take it out with where() before the call, not after.";
      fail(ErrorKind::Runtime, message);
    }
}

}  // namespace rl
