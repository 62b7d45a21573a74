// What the current thread does with the graph.
#pragma once

namespace rl {

struct GradMode {
  bool enabled = true;
  bool inference = false;
  bool anomaly = false;
  bool anomaly_check_nan = true;
};
extern thread_local GradMode t_grad_mode __attribute__((tls_model("initial-exec")));

inline bool grad_enabled() { return t_grad_mode.enabled; }

class NoGrad {
 public:
  explicit NoGrad(bool enabled = false) : before_(t_grad_mode.enabled) { t_grad_mode.enabled = enabled; }
  ~NoGrad() { t_grad_mode.enabled = before_; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

}  // namespace rl
