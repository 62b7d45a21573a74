#include "schema/registry.h"

#include "schema/op_def.h"

namespace rl {

std::unordered_map<std::string, OpDef*>& op_table() {
  static auto* t = new std::unordered_map<std::string, OpDef*>;
  return *t;
}
std::vector<std::pair<std::string, std::string>>& op_aliases() {
  static auto* a = new std::vector<std::pair<std::string, std::string>>;
  return *a;
}

void define_op(const char* name, const OverloadSpec& spec, const char* doc) {
  OpDef*& def = op_table()[name];
  if (!def) {
    def = new OpDef;
    def->name = name;
  }
  if (doc && *doc) def->doc = doc;
  def->flags |= spec.flags & ~static_cast<uint32_t>(kOld);
  if (spec.kernel) def->kernel = spec.kernel;
  Overload o;
  o.spec = spec;
  if (spec.results) o.results = std::string(name) + ":" + spec.results;
  def->overloads.push_back(std::move(o));
}

void document_op(const char* name, const char* doc) { op_table().at(name)->doc = doc; }

void define_alias(const char* alias, const char* name) { op_aliases().push_back({alias, name}); }

const Kernel* kernel_of(const char* name) {
  auto found = op_table().find(name);
  return found == op_table().end() ? nullptr : found->second->kernel;
}

}  // namespace rl
