// What AddressSanitizer starts with, in every program of a build with it.

/// LeakSanitizer of GCC 12 takes an opened library's thread-local block for one of glibc 2.19 when its address is 16 past a
/// page's, reads its place and size from the heap, and crashes. Without its records of such blocks it finds them as it does
/// everything else that the loader has allocated.
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }
