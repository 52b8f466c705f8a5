/* cli/notify.c - a datagram for systemd (sd_notify(3)). */
#include "notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void nib_cli_notify(const char *state) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof address.sun_path) return;
    memcpy(address.sun_path, path, strlen(path));
    if (*path == '@') address.sun_path[0] = 0; /* a name without a file */
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0) return;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    ssize_t ignored = sendto(fd, state, strlen(state), 0, (struct sockaddr *)&address, len);
    (void)ignored;
    close(fd);
}
