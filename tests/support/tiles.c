/* tests/support/tiles.c - the tile registers of each thread: tiles.h. */
#include "support/tiles.h"

_Thread_local tiles tiles_of_thread;
