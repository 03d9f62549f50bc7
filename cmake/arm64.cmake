# The toolchain of the preset arm64: Debian's cross compiler for 64-bit ARM. CMake finds libraries in
# /usr/lib/aarch64-linux-gnu, where the packages of that architecture put them, and runs tests by QEMU if it is there.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(REEL_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(REEL_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${REEL_QEMU})
endif()
