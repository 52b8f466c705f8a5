# cmake/aarch64.cmake - toolchain for 64-bit ARM on another Debian machine: the cross compiler, libraries of the foreign
# architecture (scripts/install_deps cross), and qemu-user to run what was built. Used by the preset `aarch64`.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
