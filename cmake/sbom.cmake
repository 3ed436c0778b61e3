# The software bill of materials (CycloneDX, in .dist-info/sboms, see PEP 770): third-party code that
# is compiled into the module. Versions are read from the compiled headers.

function(read_version header prefix result)
  file(READ "${header}" text)
  set(parts "")
  foreach(part MAJOR MINOR PATCH)
    if(NOT text MATCHES "#define ${prefix}_${part} ([0-9]+)")
      message(FATAL_ERROR "${header} has no ${prefix}_${part}, which the SBOM needs")
    endif()
    list(APPEND parts ${CMAKE_MATCH_1})
  endforeach()
  list(JOIN parts "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

function(install_sbom)
  read_version("${NB_DIR}/include/nanobind/nanobind.h" NB_VERSION nanobind_version)
  read_version("${NB_DIR}/ext/robin_map/include/tsl/robin_growth_policy.h" TSL_RH_VERSION
    robin_map_version)
  set(abcgbm_url "pkg:pypi/abcgbm@${SKBUILD_PROJECT_VERSION_FULL}")
  set(nanobind_url "pkg:pypi/nanobind@${nanobind_version}")
  set(robin_map_url "pkg:github/tessil/robin-map@v${robin_map_version}")
  configure_file(cmake/sbom.cdx.json.in abcgbm.cdx.json @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/abcgbm.cdx.json"
    DESTINATION "${SKBUILD_METADATA_DIR}/sboms")
endfunction()
