// A type of a list by its index, which is how the calls of fusion groups name their functors.
#pragma once
#include "ops/functors/domain.h"

namespace reel {

template <int i, class List>
struct Place;
template <int i, class First, class... Rest>
struct Place<i, TypeList<First, Rest...>> : Place<i - 1, TypeList<Rest...>> {};
template <class First, class... Rest>
struct Place<0, TypeList<First, Rest...>> {
  using type = First;
};

}  // namespace reel
