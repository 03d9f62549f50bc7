// What refers to a function that the program does not have, as one without exported symbols has none.
namespace reel {
int missing();
}
extern "C" int call_it() { return reel::missing(); }
