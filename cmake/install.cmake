# cmake --install: libraries, headers, find_package(reel), pkg-config, programs and presets. The components are the
# packages of cmake/pack.cmake.
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/reel)
set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/reel)
get_target_property(library_type reel TYPE)
if(library_type STREQUAL "SHARED_LIBRARY")
  set(shared ON)
else()
  set(shared OFF)
endif()

set_target_properties(reel_training PROPERTIES EXPORT_NAME training)
install(TARGETS reel reel_training EXPORT reelTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libreel NAMELINK_COMPONENT libreel-dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libreel-dev)
install(EXPORT reelTargets NAMESPACE reel:: DESTINATION ${config_dir} COMPONENT libreel-dev)
install(DIRECTORY ${include_dir}/reel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libreel-dev)

# What a program links beside a static library; a shared one brings it along.
set(linked_names "")
set(linked_flags "")
set(linked_modules "")  # of pkg-config, beside those whose headers Reel's include
if(NOT shared)
  set(linked_modules ", zlib")
  foreach(library ${reel_libraries})
    if(library MATCHES "/lib([^/]+)\\.(a|so|dylib)$")
      list(APPEND linked_names ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(TRANSFORM linked_names PREPEND -l OUTPUT_VARIABLE linked_flags)
  list(APPEND linked_flags -ldl -pthread)
  if(with_cuda)
    list(APPEND linked_flags -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt)
  endif()
  list(JOIN linked_flags " " linked_flags)
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/reelConfig.cmake.in ${PROJECT_BINARY_DIR}/reelConfig.cmake
                              INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/reelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/reelConfig.cmake ${PROJECT_BINARY_DIR}/reelConfigVersion.cmake DESTINATION ${config_dir}
        COMPONENT libreel-dev)
install(FILES cmake/plugin.cmake DESTINATION ${config_dir} RENAME reelPlugin.cmake COMPONENT libreel-dev)

# As seen from the folder that the .pc files are in, so that the prefix can be moved.
file(RELATIVE_PATH prefix_from_pc /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
foreach(name reel reel-training)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libreel-dev)
endforeach()
install(FILES LICENSE CHANGELOG.md DESTINATION ${doc_dir} COMPONENT libreel-dev)
install(FILES third_party/uplot/LICENSE DESTINATION ${doc_dir} RENAME uplot.LICENSE COMPONENT libreel-dev)

if(REEL_TASKS)
  set_target_properties(reel_app PROPERTIES EXPORT_NAME app)
  install(TARGETS reel_app EXPORT reelTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libreel-dev
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libreel)
  install(TARGETS ${task_programs} RUNTIME DESTINATION ${REEL_PROGRAMS_DIR} COMPONENT reel-tools)
  if(with_mpi)
    install(TARGETS reel_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/reel COMPONENT reel-tools)
  endif()
  install(DIRECTORY presets DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/reel COMPONENT reel-tools)
endif()

# A loader looks for the libraries of a prefix like /opt/reel there only if it is told to.
if(shared AND NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  file(RELATIVE_PATH libraries_from_programs /p/${REEL_PROGRAMS_DIR} /p/${CMAKE_INSTALL_LIBDIR})
  set_target_properties(reel_training PROPERTIES INSTALL_RPATH "$ORIGIN")
  if(REEL_TASKS)
    set_target_properties(${task_programs} PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries_from_programs}")
  endif()
endif()

option(REEL_DEB "make Debian packages: the preset deb has what belongs to it" OFF)
if(REEL_DEB)
  include(cmake/pack.cmake)
endif()
