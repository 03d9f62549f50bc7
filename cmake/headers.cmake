# Headers for users, in the build folder's include/ and, when installed, in the prefix's: the same files in both. Within
# the tree they include each other as "engine/..." and "tasks/training/..."; for users all paths begin with reel/. As a
# script (cmake -DSOURCE=... -DOUTPUT=... -DHEADERS=... -P) this file writes those that have changed.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_policy(SET CMP0057 NEW)  # if(IN_LIST)
  string(REPLACE "," ";" HEADERS "${HEADERS}")
  file(GLOB_RECURSE stale RELATIVE ${OUTPUT} ${OUTPUT}/*)
  list(REMOVE_ITEM stale version.h)
  list(TRANSFORM HEADERS REPLACE "^(include/reel|tasks)/" "" OUTPUT_VARIABLE paths)
  foreach(header path IN ZIP_LISTS HEADERS paths)
    file(READ ${SOURCE}/${header} text)
    string(REGEX REPLACE "#include \"tasks/(app|data|io|training)/" "#include \"reel/\\1/" text "${text}")
    string(REGEX REPLACE "#include \"(engine|ops|cells|backends)/" "#include \"reel/\\1/" text "${text}")
    list(REMOVE_ITEM stale ${path})
    string(REGEX MATCHALL "#include \"[^\"]+" includes "${text}")
    foreach(include ${includes})
      string(REGEX REPLACE "#include \"(reel/)?" "" include ${include})
      if(NOT include IN_LIST paths AND NOT include STREQUAL version.h)
        message(FATAL_ERROR "${header} is for users, but includes ${include}, which they do not have")
      endif()
    endforeach()
    set(before "")
    if(EXISTS ${OUTPUT}/${path})
      file(READ ${OUTPUT}/${path} before)
    endif()
    if(NOT text STREQUAL before)
      file(WRITE ${OUTPUT}/${path} "${text}")
    endif()
  endforeach()
  foreach(path ${stale})
    file(REMOVE ${OUTPUT}/${path})
  endforeach()
  return()
endif()

file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/reel/*.h
     ${PROJECT_SOURCE_DIR}/engine/*.h ${PROJECT_SOURCE_DIR}/ops/*.h ${PROJECT_SOURCE_DIR}/cells/*.h
     ${PROJECT_SOURCE_DIR}/tasks/app/*.h ${PROJECT_SOURCE_DIR}/tasks/io/*.h ${PROJECT_SOURCE_DIR}/tasks/training/*.h ${PROJECT_SOURCE_DIR}/tasks/data/data_error.h ${PROJECT_SOURCE_DIR}/backends/shared/device_link.h)
# These include a library that users need not have, or headers of the tasks' data.
list(REMOVE_ITEM headers tasks/app/toml.h tasks/app/session.h tasks/app/layer_names.h tasks/app/preset_section.h tasks/app/load_table.h)
if(NOT REEL_TASKS)
  list(FILTER headers EXCLUDE REGEX "^(tasks|include/reel)/app")
endif()
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE header_files)
list(JOIN headers "," header_list)
# Plugins are compiled with these: the name of a symbol says with which (version.h.in).
set(hashes "")
foreach(header ${headers})
  if(header MATCHES "^(engine|ops|cells)/")
    file(SHA256 ${PROJECT_SOURCE_DIR}/${header} hash)
    string(APPEND hashes ${hash})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
  endif()
endforeach()
string(SHA256 headers_hash "${hashes}")
string(SUBSTRING ${headers_hash} 0 12 headers_hash)
set(include_dir ${PROJECT_BINARY_DIR}/include)
set(stamp ${PROJECT_BINARY_DIR}/include.stamp)
add_custom_command(OUTPUT ${stamp} DEPENDS ${header_files} ${CMAKE_CURRENT_LIST_FILE} VERBATIM
                   COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${include_dir}/reel -DHEADERS=${header_list}
                           -P ${CMAKE_CURRENT_LIST_FILE}
                   COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
                   COMMENT "Headers for users")
add_custom_target(reel_headers DEPENDS ${stamp})
configure_file(${PROJECT_SOURCE_DIR}/include/reel/version.h.in ${include_dir}/reel/version.h @ONLY)
include_directories(${include_dir})  # of Reel's own files, which want the version

include(GNUInstallDirs)
foreach(library reel reel_training)
  add_dependencies(${library} reel_headers)
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${include_dir}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
