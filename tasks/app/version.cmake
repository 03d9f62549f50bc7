# What programs say of themselves beside the version: the commit, where the source is the root of a git repository. A new
# commit configures the build again, so that its programs name it.
set(reel_commit "")
find_package(Git QUIET)
if(GIT_FOUND)
  function(reel_git output)
    execute_process(COMMAND ${GIT_EXECUTABLE} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE text
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(${output} "${text}" PARENT_SCOPE)
  endfunction()
  reel_git(root rev-parse --show-toplevel)
  get_filename_component(source_dir ${PROJECT_SOURCE_DIR} REALPATH)
  if(root STREQUAL source_dir)
    reel_git(reel_commit rev-parse HEAD)
    reel_git(log rev-parse --git-path logs/HEAD)
    get_filename_component(log "${log}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(EXISTS ${log})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
  endif()
endif()
set_source_files_properties(${PROJECT_SOURCE_DIR}/tasks/app/provenance.cpp PROPERTIES COMPILE_DEFINITIONS
                            "REEL_COMMIT=\"${reel_commit}\"")
