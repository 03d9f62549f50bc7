// What a plugin that was compiled for another version of Reel refers to, and this one does not have.
extern "C" const int reel_version_0_0;
extern "C" const int* const version_of_plugin;
const int* const version_of_plugin = &reel_version_0_0;
