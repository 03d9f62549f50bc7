// A shared library that has nothing to do with Reel.
extern "C" int answer() { return 42; }
