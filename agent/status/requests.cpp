#include "agent/status/requests.h"

#include <fmt/format.h>

#include "agent/status/status_json.h"
#include "shm/status.h"

namespace memopt::agent {

std::string answer_request(std::string_view request, const Services& services) {
  if (request == shm::kStatusRequest) return services.status();
  if (!request.starts_with(shm::kLimitRequest) || !request.ends_with('\n')) {
    return error_json("unknown request; this agent answers: status 1, limit 1 VALUE");
  }
  request.remove_prefix(shm::kLimitRequest.size());
  request.remove_suffix(1);
  const Services::Limit set = services.set_limit(request);
  if (!set.error.empty()) return error_json(set.error);
  return fmt::format("{{\"format\": {}, \"limit\": {}, \"held\": {}}}\n", shm::kStatusFormat, set.limit, set.held);
}

}  // namespace memopt::agent
