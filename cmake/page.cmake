# cmake/page.cmake - the web page as a C file of `target`: server/page and the libraries that npm fetches (scripts/embed_page).
find_program(NIB_NPM npm)
function(nib_embed_page target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/server/page/*)
  set(out ${PROJECT_BINARY_DIR}/generated/server/page_files.c)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/server)
  if(NOT NIB_NPM)
    message(STATUS "npm is missing: the web page will show plain text")
  endif()
  add_custom_command(OUTPUT ${out}
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/embed_page ${PROJECT_SOURCE_DIR}/server/page ${PROJECT_BINARY_DIR}/page ${out} ${NIB_NPM}
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/scripts/embed_page COMMENT "Embedding the web page" VERBATIM)
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/server)
endfunction()
