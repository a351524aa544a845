// The headers that nearly every test includes, compiled once per test program. Sources still include all that they use.
// There is no guard: the compiler refuses one in the file that it precompiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
