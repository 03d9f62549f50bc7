# Objects, libraries and embedded headers.

# The sources below a folder as objects, reel_FOLDER. They can go into shared libraries, be it Reel's or a user's that links
# the static one; calls within the library are direct all the same.
function(reel_objects folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/${folder}/*.cu)
  string(REPLACE "/" "_" name ${folder})
  set(target reel_${name})
  add_library(${target} OBJECT ${sources})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
  target_link_libraries(${target} PUBLIC fmt::fmt PRIVATE reel_warnings nlohmann_json::nlohmann_json)
  if(folder STREQUAL backends/cpu)  # has options of its own
    reel_precompile(${target} ${target})
  else()
    reel_precompile(${target} reel_engine)
  endif()
endfunction()

# reel_precompile(TARGET FIRST [HEADERS...]): the headers that most files include, and those named, compiled once. FIRST is
# the first target with these options; the others take what it has compiled.
function(reel_precompile target first)
  if(NOT REEL_PCH)
    return()
  endif()
  if(NOT target STREQUAL first)
    target_precompile_headers(${target} REUSE_FROM ${first})
    return()
  endif()
  set(headers algorithm array chrono cmath complex cstdint cstring filesystem functional limits map memory mutex numeric
              optional set span sstream string string_view utility vector fmt/format.h fmt/ranges.h ${ARGN})
  if(NOT target STREQUAL reel_backends_cpu)
    list(APPEND headers nlohmann/json.hpp)
  endif()
  list(TRANSFORM headers PREPEND "<")
  list(TRANSFORM headers APPEND "$<ANGLE-R>")
  if(REEL_PCH STREQUAL "ALL" AND NOT target STREQUAL reel_backends_cpu)
    list(APPEND headers ${PROJECT_SOURCE_DIR}/ops/ops.h)
  endif()
  list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()

# reel_headers(NAME [HEADERS...]): a first target for reel_precompile that has nothing but headers, and is built if another
# target wants them.
function(reel_headers name)
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE fmt::fmt reel_warnings nlohmann_json::nlohmann_json)
  reel_precompile(${name} ${name} ${ARGN})
endfunction()

# reel_library(NAME public|internal PARTS...): a library of the objects reel_PART. BUILD_SHARED_LIBS applies to public
# ones; an internal one is linked into the programs, but not under sanitizers, where libraries are most of a program and of
# the time to link it. A static library is an archive of a single object, so a program that links any of it links all of
# it: ops, cells and backends that register themselves are always there, without a linker option.
function(reel_library name kind)
  set(objects "")
  foreach(part ${ARGN})
    list(APPEND objects $<FILTER:$<TARGET_OBJECTS:reel_${part}>,EXCLUDE,\\.gch$>)  # a precompiled header is listed, too
  endforeach()
  if(REEL_BUNDLE OR (BUILD_SHARED_LIBS AND (kind STREQUAL "public" OR REEL_SANITIZE)))
    add_library(${name} SHARED ${objects})
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
    if(NOT REEL_BUNDLE)  # its libraries are copied by one name
      target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL)  # a static libxsmm within is nobody else's
      set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION}
                            SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    endif()
  else()
    set(whole ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${whole} DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
                       COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -o ${whole} ${objects}
                       COMMENT "Joining the objects of ${name}")
    add_library(${name} STATIC ${whole})
    set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    set_target_properties(${name} PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  endif()
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

# reel_link_installed(TARGET LIBRARIES...): links these, which an installed library names without their folders.
function(reel_link_installed target)
  foreach(library ${ARGN})
    if(library MATCHES "/lib([^/]+)\\.(a|so|dylib)$")
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${library}> $<INSTALL_INTERFACE:${CMAKE_MATCH_1}>)
    else()
      target_link_libraries(${target} PRIVATE ${library})
    endif()
  endforeach()
endfunction()

# reel_embed(TARGET NAMESPACE DECLARATION HEADERS...): what code that is made at run time includes, as text.
function(reel_embed target namespace declaration)
  set(embedded "")
  foreach(header ${ARGN})
    file(READ ${header} text)
    string(APPEND embedded "    {\"${header}\", R\"header(${text})header\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  endforeach()
  set(output ${PROJECT_BINARY_DIR}/embedded_headers_${namespace}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
       "#include \"${declaration}\"\nnamespace reel::${namespace} {\nconst std::vector<KernelHeader>& own_headers() {\n  static const std::vector<KernelHeader> headers{\n@embedded@  };\n  return headers;\n}\n}  // namespace reel::${namespace}\n")
  target_sources(${target} PRIVATE ${output})
endfunction()

# reel_texts(TARGET NAMESPACE DECLARATION NAME FILE...): these files as constants of the program.
function(reel_texts target namespace declaration)
  set(texts "")
  set(files ${ARGN})
  while(files)
    list(POP_FRONT files name file)
    file(READ ${file} text)
    string(APPEND texts "const std::string_view ${name} = R\"file(${text})file\";\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endwhile()
  set(output ${PROJECT_BINARY_DIR}/texts_${namespace}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
       "#include \"${declaration}\"\nnamespace reel::${namespace} {\n@texts@}  // namespace reel::${namespace}\n")
  target_sources(${target} PRIVATE ${output})
endfunction()

# reel_unless_own(TEST FILE): disables the test of a program that registers the cells of FILE if cells/own/ has a cell of the
# same name, as two of one name are an error.
function(reel_unless_own test file)
  set(registration "REEL_CELL\\({\"[^\"]+\"")
  file(READ ${file} text)
  string(REGEX MATCHALL "${registration}" cells "${text}")
  file(GLOB_RECURSE own CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cells/own/*.cpp)
  foreach(source ${own})
    file(READ ${source} text)
    string(REGEX MATCHALL "${registration}" own_cells "${text}")
    foreach(cell ${own_cells})
      if(cell IN_LIST cells)
        message(STATUS "Test ${test}: disabled, as ${source} has a cell of the same name")
        set_tests_properties(${test} PROPERTIES DISABLED TRUE)
      endif()
    endforeach()
  endforeach()
endfunction()
