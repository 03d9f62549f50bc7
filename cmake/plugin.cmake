# reel_add_plugin(NAME SOURCES...): NAME.so, whose cells Reel's own programs know: REEL_PLUGINS=NAME.so adding --cell ...
# It is linked with no library of Reel, as a program that loads it has one. For users of Reel, installed or as a folder.
function(reel_add_plugin name)
  if(NOT TARGET fmt::fmt)  # Reel's folder has found it for itself
    find_package(fmt REQUIRED)
  endif()
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "")
  target_compile_features(${name} PRIVATE cxx_std_20)
  # Otherwise two plugins whose ops have the same C++ name share one of them.
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  target_include_directories(${name} SYSTEM PRIVATE $<TARGET_PROPERTY:reel::reel,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${name} PRIVATE fmt::fmt)
  if(TARGET reel_headers)  # Reel's folder writes them when it is built
    add_dependencies(${name} reel_headers)
  endif()
endfunction()
