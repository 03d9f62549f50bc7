# Debian packages, made by `cpack` in a folder configured with the preset deb: libreel, libreel-dev, reel-tools.
set(REEL_MAINTAINER "" CACHE STRING "NAME <ADDRESS> of who makes the packages; by default git's user")
set(maintainer ${REEL_MAINTAINER})
if(NOT maintainer)
  execute_process(COMMAND git config user.name OUTPUT_VARIABLE name OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git config user.email OUTPUT_VARIABLE address OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(maintainer "${name} <${address}>")
endif()

# What Debian wants beside the files.
file(READ ${PROJECT_SOURCE_DIR}/LICENSE license)
string(REGEX REPLACE "\n+$" "" license "${license}")
string(REGEX MATCH "Copyright[^\n]*" holder "${license}")
string(REGEX REPLACE "^Copyright \\(c\\) " "" holder "${holder}")
file(READ ${PROJECT_SOURCE_DIR}/third_party/uplot/LICENSE uplot)
string(REGEX MATCH "Copyright[^\n]*" uplot_holder "${uplot}")
string(REGEX REPLACE "^Copyright \\(c\\) " "" uplot_holder "${uplot_holder}")
string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
string(REGEX REPLACE "\n" "\n " license "${license}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/copyright @ONLY CONTENT
     "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Reel\n\nFiles: *\nCopyright: @holder@\nLicense: Expat\n @license@\n\nFiles: third_party/uplot/*\nCopyright: @uplot_holder@\nLicense: Expat\n")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/changelog @ONLY CONTENT
     "reel (@PROJECT_VERSION@) unstable; urgency=medium\n\n  * CHANGELOG.md says what is new.\n\n -- @maintainer@  @now@\n")
set(changelog ${PROJECT_BINARY_DIR}/changelog.gz)
execute_process(COMMAND gzip -9nc ${PROJECT_BINARY_DIR}/changelog OUTPUT_FILE ${changelog} COMMAND_ERROR_IS_FATAL ANY)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/triggers CONTENT "activate-noawait ldconfig\n")
set(packages libreel libreel-dev reel-tools)
foreach(package ${packages})
  install(FILES ${PROJECT_BINARY_DIR}/copyright ${changelog} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}
          COMPONENT ${package})
endforeach()

# The programs have names like compare and apply, which others have as well: in the package one command runs them all.
if(REEL_TASKS)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/reel.in ${PROJECT_BINARY_DIR}/reel @ONLY)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/reel DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT reel-tools)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/reel.1.in ${PROJECT_BINARY_DIR}/reel.1 @ONLY)
  execute_process(COMMAND gzip -9nc ${PROJECT_BINARY_DIR}/reel.1 OUTPUT_FILE ${PROJECT_BINARY_DIR}/reel.1.gz
                  COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${PROJECT_BINARY_DIR}/reel.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT reel-tools)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reel)
set(CPACK_PACKAGE_VENDOR "The Reel authors")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${maintainer})
set(CPACK_DEBIAN_LIBREEL_PACKAGE_NAME libreel)
set(CPACK_DEBIAN_LIBREEL_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBREEL_DESCRIPTION "recurrent networks on a tensor and autodiff engine
Tensors, gradients of any order, loops over time, and the recurrent cells of
the literature; models, optimisers and checkpoints.")
set(CPACK_DEBIAN_LIBREEL_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
set(CPACK_DEBIAN_LIBREEL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBREEL_PACKAGE_SUGGESTS libdnnl2)  # opened for products of bf16
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBREEL-DEV_PACKAGE_NAME libreel-dev)
set(CPACK_DEBIAN_LIBREEL-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBREEL-DEV_DESCRIPTION "headers of Reel, a tensor and autodiff engine
What programs that use Reel are compiled with: headers, find_package(reel)
and pkg-config files.")
set(CPACK_DEBIAN_LIBREEL-DEV_PACKAGE_DEPENDS "libreel (= ${PROJECT_VERSION}), libfmt-dev, librandom123-dev")
set(CPACK_DEBIAN_REEL-TOOLS_PACKAGE_NAME reel-tools)
set(CPACK_DEBIAN_REEL-TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_REEL-TOOLS_DESCRIPTION "programs that train recurrent networks on long memory tasks
The command reel runs them: copying, adding, permuted digits, characters and
more, with the presets of papers, and tools that compare and apply networks.")
set(CPACK_DEBIAN_REEL-TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_REEL-TOOLS_PACKAGE_DEPENDS "libreel (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_REEL-TOOLS_PACKAGE_SUGGESTS "gnuplot-nox, g++")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
include(CPack)
